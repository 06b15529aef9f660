//! Functions of the runtime that are not there. Calling one is an error that names it.

use super::call;
use crate::core::error::CudaError;
use crate::core::process::complain;

macro_rules! missing {
    ($($name:ident)*) => {$(
        /// Its parameters are the caller's, and not looked at.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> i32 {
            refuse(stringify!($name))
        }
    )*};
}

/// What a call of a function that is not there gives.
pub(super) fn refuse(name: &str) -> i32 {
    call(|_| {
        complain(format!("the program calls {name}, which Warploom's runtime does not have"));
        Err(CudaError::NOT_SUPPORTED)
    })
}

missing! {
    __cudaGetProcAddress __cudaRegisterHostVar __cudaRegisterSurface __cudaRegisterUnifiedTable
    cudaArrayGetMemoryRequirements cudaArrayGetPlane cudaArrayGetSparseProperties cudaBindSurfaceToArray
    cudaCtxResetPersistingL2Cache cudaDestroyExternalMemory cudaDestroyExternalSemaphore cudaDevResourceGenerateDesc
    cudaDevSmResourceSplit cudaDevSmResourceSplitByCount cudaDeviceDisablePeerAccess cudaDeviceFlushGPUDirectRDMAWrites
    cudaDeviceGetDevResource cudaDeviceGetExecutionCtx cudaDeviceGetHostAtomicCapabilities
    cudaDeviceGetNvSciSyncAttributes cudaDeviceGetP2PAtomicCapabilities cudaDeviceGetP2PAttribute
    cudaDeviceGetTexture1DLinearMaxWidth cudaDeviceRegisterAsyncNotification cudaDeviceSetGraphMemAttribute
    cudaDeviceUnregisterAsyncNotification cudaEGLStreamConsumerAcquireFrame cudaEGLStreamConsumerConnect
    cudaEGLStreamConsumerConnectWithFlags cudaEGLStreamConsumerDisconnect cudaEGLStreamConsumerReleaseFrame
    cudaEGLStreamProducerConnect cudaEGLStreamProducerDisconnect cudaEGLStreamProducerPresentFrame
    cudaEGLStreamProducerReturnFrame cudaEventCreateFromEGLSync cudaExecutionCtxDestroy cudaExecutionCtxGetDevResource
    cudaExecutionCtxGetDevice cudaExecutionCtxGetId cudaExecutionCtxRecordEvent cudaExecutionCtxStreamCreate
    cudaExecutionCtxSynchronize cudaExecutionCtxWaitEvent cudaExternalMemoryGetMappedBuffer
    cudaExternalMemoryGetMappedMipmappedArray cudaFreeMipmappedArray cudaFuncGetParamCount cudaFuncGetParamInfo
    cudaGLGetDevices cudaGLMapBufferObject cudaGLMapBufferObjectAsync cudaGLRegisterBufferObject
    cudaGLSetBufferObjectMapFlags cudaGLSetGLDevice cudaGLUnmapBufferObject cudaGLUnmapBufferObjectAsync
    cudaGLUnregisterBufferObject cudaGetExportTable cudaGetFuncBySymbol cudaGetMipmappedArrayLevel
    cudaGetSurfaceReference cudaGetTextureObjectResourceViewDesc cudaGraphAddExternalSemaphoresSignalNode
    cudaGraphAddExternalSemaphoresWaitNode cudaGraphAddMemcpyNodeFromSymbol cudaGraphAddMemcpyNodeToSymbol
    cudaGraphChildGraphNodeGetGraph cudaGraphConditionalHandleCreate cudaGraphConditionalHandleCreate_v2
    cudaGraphDebugDotPrint cudaGraphDestroyNode cudaGraphEventRecordNodeGetEvent cudaGraphEventRecordNodeSetEvent
    cudaGraphEventWaitNodeGetEvent cudaGraphEventWaitNodeSetEvent cudaGraphExecChildGraphNodeSetParams
    cudaGraphExecEventRecordNodeSetEvent cudaGraphExecEventWaitNodeSetEvent
    cudaGraphExecExternalSemaphoresSignalNodeSetParams cudaGraphExecExternalSemaphoresWaitNodeSetParams
    cudaGraphExecGetFlags cudaGraphExecGetId cudaGraphExecHostNodeSetParams cudaGraphExecMemcpyNodeSetParams
    cudaGraphExecMemcpyNodeSetParams1D cudaGraphExecMemcpyNodeSetParamsFromSymbol
    cudaGraphExecMemcpyNodeSetParamsToSymbol cudaGraphExecMemsetNodeSetParams cudaGraphExecNodeSetParams
    cudaGraphExternalSemaphoresSignalNodeGetParams cudaGraphExternalSemaphoresSignalNodeSetParams
    cudaGraphExternalSemaphoresWaitNodeGetParams cudaGraphExternalSemaphoresWaitNodeSetParams cudaGraphGetEdges
    cudaGraphGetId cudaGraphHostNodeGetParams cudaGraphHostNodeSetParams cudaGraphKernelNodeCopyAttributes
    cudaGraphKernelNodeGetAttribute cudaGraphKernelNodeSetAttribute cudaGraphMemAllocNodeGetParams
    cudaGraphMemFreeNodeGetParams cudaGraphMemcpyNodeGetParams cudaGraphMemcpyNodeSetParams
    cudaGraphMemcpyNodeSetParams1D cudaGraphMemcpyNodeSetParamsFromSymbol cudaGraphMemcpyNodeSetParamsToSymbol
    cudaGraphMemsetNodeGetParams cudaGraphMemsetNodeSetParams cudaGraphNodeFindInClone cudaGraphNodeGetContainingGraph
    cudaGraphNodeGetDependencies cudaGraphNodeGetDependentNodes cudaGraphNodeGetEnabled cudaGraphNodeGetLocalId
    cudaGraphNodeGetParams cudaGraphNodeGetToolsId cudaGraphNodeSetEnabled cudaGraphNodeSetParams
    cudaGraphReleaseUserObject cudaGraphRemoveDependencies cudaGraphRetainUserObject cudaGraphicsEGLRegisterImage
    cudaGraphicsGLRegisterBuffer cudaGraphicsGLRegisterImage cudaGraphicsMapResources
    cudaGraphicsResourceGetMappedEglFrame cudaGraphicsResourceGetMappedMipmappedArray
    cudaGraphicsResourceGetMappedPointer cudaGraphicsResourceSetMapFlags cudaGraphicsSubResourceGetMappedArray
    cudaGraphicsUnmapResources cudaGraphicsUnregisterResource cudaGraphicsVDPAURegisterOutputSurface
    cudaGraphicsVDPAURegisterVideoSurface cudaGreenCtxCreate cudaImportExternalMemory cudaImportExternalSemaphore
    cudaIpcCloseMemHandle cudaIpcGetEventHandle cudaIpcGetMemHandle cudaIpcOpenEventHandle cudaIpcOpenMemHandle
    cudaKernelSetAttributeForDevice cudaLaunchCooperativeKernelMultiDevice cudaLaunchHostFunc_v2
    cudaLibraryEnumerateKernels cudaLibraryGetGlobal cudaLibraryGetKernel cudaLibraryGetKernelCount
    cudaLibraryGetManaged cudaLibraryGetUnifiedFunction cudaLibraryLoadData cudaLibraryLoadFromFile cudaLibraryUnload
    cudaLogsCurrent cudaLogsDumpToFile cudaLogsDumpToMemory cudaLogsRegisterCallback cudaLogsUnregisterCallback
    cudaMallocMipmappedArray cudaMemDiscardAndPrefetchBatchAsync cudaMemDiscardBatchAsync cudaMemGetDefaultMemPool
    cudaMemGetLocationInfo cudaMemGetMemPool cudaMemPoolExportPointer cudaMemPoolExportToShareableHandle
    cudaMemPoolImportFromShareableHandle cudaMemPoolImportPointer cudaMemPrefetchBatchAsync cudaMemRangeGetAttribute
    cudaMemRangeGetAttributes cudaMemSetMemPool cudaMemcpy3DBatchAsync cudaMemcpy3DPeer cudaMemcpy3DPeerAsync
    cudaMemcpy3DWithAttributesAsync cudaMemcpyArrayToArray cudaMemcpyBatchAsync cudaMemcpyFromArrayAsync
    cudaMemcpyToArrayAsync cudaMemcpyWithAttributesAsync cudaMipmappedArrayGetMemoryRequirements
    cudaMipmappedArrayGetSparseProperties cudaSetDoubleForDevice cudaSetDoubleForHost cudaSetValidDevices
    cudaSignalExternalSemaphoresAsync cudaStreamBeginCaptureToGraph cudaStreamBeginRecaptureToGraph
    cudaStreamCopyAttributes cudaStreamGetAttribute cudaStreamGetDevResource cudaStreamSetAttribute
    cudaStreamUpdateCaptureDependencies cudaSubgridCreate cudaSubgridWorkerGridCreate cudaSubgridWorksetCreate
    cudaThreadGetLimit cudaThreadSetLimit cudaUserObjectCreate cudaUserObjectRelease cudaUserObjectRetain
    cudaVDPAUGetDevice cudaVDPAUSetVDPAUDevice cudaWaitExternalSemaphoresAsync
}
