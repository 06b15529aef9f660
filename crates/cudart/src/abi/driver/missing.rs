//! Functions of the driver that are not there. Calling one is an error that names it; `cuGetProcAddress` does not find
//! it.

use crate::core::error::CudaError;
use crate::core::process::complain;

macro_rules! missing {
    ($($name:ident)*) => {
        $(
            /// Its parameters are the caller's, and not looked at.
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> i32 {
                refuse(stringify!($name))
            }
        )*

        pub(super) const MISSING: &[&str] = &[$(stringify!($name)),*];
    };
}

fn refuse(name: &str) -> i32 {
    complain(format!("the program calls {name}, which Warploom's driver does not have"));
    CudaError::NOT_SUPPORTED.0
}

missing! {
    cuArray3DGetDescriptor_v2 cuArrayGetDescriptor_v2 cuArrayGetMemoryRequirements cuArrayGetPlane
    cuArrayGetSparseProperties cuCheckpointOperationComplete cuCheckpointProcessCheckpoint
    cuCheckpointProcessGetRestoreThreadId cuCheckpointProcessGetState cuCheckpointProcessLock cuCheckpointProcessRestore
    cuCheckpointProcessUnlock cuCoredumpDeregisterCompleteCallback cuCoredumpDeregisterStartCallback
    cuCoredumpGetAttribute cuCoredumpGetAttributeGlobal cuCoredumpRegisterCompleteCallback
    cuCoredumpRegisterStartCallback cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal cuCtxAttach cuCtxDetach
    cuCtxFromGreenCtx cuCtxGetDevResource cuCtxGetExecAffinity cuCtxRecordEvent cuCtxResetPersistingL2Cache
    cuCtxWaitEvent cuDestroyExternalMemory cuDestroyExternalSemaphore cuDevResourceGenerateDesc cuDevSmResourceSplit
    cuDevSmResourceSplitByCount cuDeviceGetCliqueCount cuDeviceGetCliqueInfo cuDeviceGetDevResource
    cuDeviceGetFabricClusterUuid cuDeviceGetHostAtomicCapabilities cuDeviceGetLuid cuDeviceGetNvSciSyncAttributes
    cuDeviceGetP2PAtomicCapabilities cuDeviceGetP2PAttribute cuDeviceGetProperties cuDeviceGetTexture1DLinearMaxWidth
    cuDeviceRegisterAsyncNotification cuDeviceSetGraphMemAttribute cuDeviceUnregisterAsyncNotification
    cuExternalMemoryGetMappedBuffer cuExternalMemoryGetMappedMipmappedArray cuFlushGPUDirectRDMAWrites
    cuFuncGetParamCount cuFuncSetBlockShape cuFuncSetSharedSize cuGetExportTable cuGraphAddBatchMemOpNode
    cuGraphAddDependencies_v2 cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode
    cuGraphAddNode_v2 cuGraphAddNode_v3 cuGraphBatchMemOpNodeGetParams cuGraphBatchMemOpNodeSetParams
    cuGraphChildGraphNodeGetGraph cuGraphConditionalHandleCreate cuGraphDebugDotPrint cuGraphDestroyNode
    cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent cuGraphEventWaitNodeGetEvent
    cuGraphEventWaitNodeSetEvent cuGraphExecBatchMemOpNodeSetParams cuGraphExecChildGraphNodeSetParams
    cuGraphExecEventRecordNodeSetEvent cuGraphExecEventWaitNodeSetEvent cuGraphExecExternalSemaphoresSignalNodeSetParams
    cuGraphExecExternalSemaphoresWaitNodeSetParams cuGraphExecGetFlags cuGraphExecGetId cuGraphExecHostNodeSetParams
    cuGraphExecMemcpyNodeSetParams cuGraphExecMemsetNodeSetParams cuGraphExecNodeSetParams
    cuGraphExternalSemaphoresSignalNodeGetParams cuGraphExternalSemaphoresSignalNodeSetParams
    cuGraphExternalSemaphoresWaitNodeGetParams cuGraphExternalSemaphoresWaitNodeSetParams cuGraphGetEdges_v2
    cuGraphGetId cuGraphHostNodeGetParams cuGraphHostNodeSetParams cuGraphInstantiate_v2 cuGraphKernelNodeCopyAttributes
    cuGraphKernelNodeGetAttribute cuGraphKernelNodeGetParams_v2 cuGraphKernelNodeSetAttribute
    cuGraphMemAllocNodeGetParams cuGraphMemFreeNodeGetParams cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams
    cuGraphMemsetNodeGetParams cuGraphMemsetNodeSetParams cuGraphNodeFindInClone cuGraphNodeGetContainingGraph
    cuGraphNodeGetDependencies_v2 cuGraphNodeGetDependentNodes_v2 cuGraphNodeGetEnabled cuGraphNodeGetLocalId
    cuGraphNodeGetParams cuGraphNodeGetToolsId cuGraphNodeSetEnabled cuGraphNodeSetParams cuGraphNodeSetParams_v2
    cuGraphReleaseUserObject cuGraphRemoveDependencies_v2 cuGraphRetainUserObject cuGraphicsMapResources
    cuGraphicsResourceGetMappedMipmappedArray cuGraphicsResourceGetMappedPointer_v2 cuGraphicsResourceSetMapFlags_v2
    cuGraphicsSubResourceGetMappedArray cuGraphicsUnmapResources cuGraphicsUnregisterResource cuGreenCtxCreate
    cuGreenCtxDestroy cuGreenCtxGetDevResource cuGreenCtxGetId cuGreenCtxRecordEvent cuGreenCtxStreamCreate
    cuGreenCtxWaitEvent cuImportExternalMemory cuImportExternalSemaphore cuIpcCloseMemHandle cuIpcGetEventHandle
    cuIpcGetMemHandle cuIpcOpenEventHandle cuIpcOpenMemHandle_v2 cuKernelGetParamCount cuLaunch
    cuLaunchCooperativeKernelMultiDevice cuLaunchGrid cuLaunchGridAsync cuLaunchHostFunc_v2 cuLibraryGetManaged
    cuLibraryGetUnifiedFunction cuLogicalEndpointAddDevice cuLogicalEndpointBindAddr cuLogicalEndpointBindMem
    cuLogicalEndpointCreate cuLogicalEndpointDestroy cuLogicalEndpointExport cuLogicalEndpointGetLimits
    cuLogicalEndpointIdRelease cuLogicalEndpointIdReserve cuLogicalEndpointImport cuLogicalEndpointQuery
    cuLogicalEndpointUnbind cuLogsCurrent cuLogsDumpToFile cuLogsDumpToMemory cuLogsRegisterCallback
    cuLogsUnregisterCallback cuMemAddressFree cuMemAddressReserve cuMemBatchDecompressAsync cuMemCreate
    cuMemDiscardAndPrefetchBatchAsync cuMemDiscardBatchAsync cuMemExportToShareableHandle cuMemGetAccess
    cuMemGetAllocationGranularity cuMemGetAllocationPropertiesFromHandle cuMemGetDefaultMemPool
    cuMemGetHandleForAddressRange cuMemGetLocationInfo cuMemGetMemPool cuMemImportFromShareableHandle cuMemMap
    cuMemMapArrayAsync cuMemPoolExportPointer cuMemPoolExportToShareableHandle cuMemPoolImportFromShareableHandle
    cuMemPoolImportPointer cuMemPrefetchBatchAsync cuMemRangeGetAttribute cuMemRangeGetAttributes cuMemRelease
    cuMemRetainAllocationHandle cuMemSetAccess cuMemSetMemPool cuMemUnmap cuMemcpy3DBatchAsync_v2 cuMemcpy3DPeer
    cuMemcpy3DPeerAsync cuMemcpy3DWithAttributesAsync cuMemcpyAtoA_v2 cuMemcpyAtoD_v2 cuMemcpyAtoHAsync_v2
    cuMemcpyAtoH_v2 cuMemcpyBatchAsync_v2 cuMemcpyDtoA_v2 cuMemcpyHtoAAsync_v2 cuMemcpyHtoA_v2
    cuMemcpyWithAttributesAsync cuMipmappedArrayCreate cuMipmappedArrayDestroy cuMipmappedArrayGetLevel
    cuMipmappedArrayGetMemoryRequirements cuMipmappedArrayGetSparseProperties cuModuleGetSurfRef cuModuleGetTexRef
    cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindAddr_v2 cuMulticastBindMem cuMulticastBindMem_v2
    cuMulticastCreate cuMulticastGetGranularity cuMulticastUnbind cuOccupancyMaxActiveClusters
    cuOccupancyMaxPotentialClusterSize cuParamSetSize cuParamSetTexRef cuParamSetf cuParamSeti cuParamSetv
    cuSignalExternalSemaphoresAsync cuStreamBatchMemOp_v2 cuStreamBeginCaptureToCig cuStreamBeginCaptureToGraph
    cuStreamBeginRecaptureToGraph cuStreamCopyAttributes cuStreamEndCaptureToCig cuStreamGetAttribute
    cuStreamGetDevResource cuStreamGetGreenCtx cuStreamSetAttribute cuStreamUpdateCaptureDependencies_v2
    cuStreamWaitValue32_v2 cuStreamWaitValue64_v2 cuStreamWriteValue32_v2 cuStreamWriteValue64_v2
    cuSurfObjectGetResourceDesc cuSurfRefGetArray cuSurfRefSetArray cuTensorMapEncodeIm2col cuTensorMapEncodeIm2colWide
    cuTexObjectGetResourceDesc cuTexObjectGetResourceViewDesc cuTexObjectGetTextureDesc cuTexRefCreate cuTexRefDestroy
    cuTexRefGetAddressMode cuTexRefGetAddress_v2 cuTexRefGetArray cuTexRefGetBorderColor cuTexRefGetFilterMode
    cuTexRefGetFlags cuTexRefGetFormat cuTexRefGetMaxAnisotropy cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias
    cuTexRefGetMipmapLevelClamp cuTexRefGetMipmappedArray cuTexRefSetAddress2D_v2 cuTexRefSetAddress2D_v3
    cuTexRefSetAddressMode cuTexRefSetAddress_v2 cuTexRefSetArray cuTexRefSetBorderColor cuTexRefSetFilterMode
    cuTexRefSetFlags cuTexRefSetFormat cuTexRefSetMaxAnisotropy cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias
    cuTexRefSetMipmapLevelClamp cuTexRefSetMipmappedArray cuUserObjectCreate cuUserObjectRelease cuUserObjectRetain
    cuWaitExternalSemaphoresAsync
}
