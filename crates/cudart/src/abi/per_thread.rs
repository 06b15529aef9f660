//! The names by which programs with a default stream for each thread (`nvcc --default-stream per-thread`) call the
//! runtime. All threads share the default stream here, so each is another name of a function.

use std::arch::naked_asm;

macro_rules! aliases {
    ($($alias:ident $name:literal)*) => {$(
        /// Passes its parameters on as they are.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        extern "C" fn $alias() -> i32 {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(concat!("jmp ", $name, "@PLT"));
            #[cfg(not(target_arch = "x86_64"))]
            naked_asm!(concat!("b ", $name));
        }
    )*};
}

aliases! {
    __cudaLaunchKernel_ptsz "__cudaLaunchKernel"
    cudaEventRecordWithFlags_ptsz "cudaEventRecordWithFlags"
    cudaEventRecord_ptsz "cudaEventRecord"
    cudaFreeAsync_ptsz "cudaFreeAsync"
    cudaGetDriverEntryPointByVersion_ptsz "cudaGetDriverEntryPointByVersion"
    cudaGetDriverEntryPoint_ptsz "cudaGetDriverEntryPoint"
    cudaGraphInstantiateWithParams_ptsz "cudaGraphInstantiateWithParams"
    cudaGraphLaunch_ptsz "cudaGraphLaunch"
    cudaGraphUpload_ptsz "cudaGraphUpload"
    cudaLaunchCooperativeKernel_ptsz "cudaLaunchCooperativeKernel"
    cudaLaunchHostFunc_ptsz "cudaLaunchHostFunc"
    cudaLaunchKernelExC_ptsz "cudaLaunchKernelExC"
    cudaLaunchKernel_ptsz "cudaLaunchKernel"
    cudaMallocAsync_ptsz "cudaMallocAsync"
    cudaMallocFromPoolAsync_ptsz "cudaMallocFromPoolAsync"
    cudaMemDiscardAndPrefetchBatchAsync_ptsz "cudaMemDiscardAndPrefetchBatchAsync"
    cudaMemDiscardBatchAsync_ptsz "cudaMemDiscardBatchAsync"
    cudaMemPrefetchAsync_ptsz "cudaMemPrefetchAsync"
    cudaMemPrefetchAsync_v2_ptsz "cudaMemPrefetchAsync_v2"
    cudaMemPrefetchBatchAsync_ptsz "cudaMemPrefetchBatchAsync"
    cudaMemcpy2DArrayToArray_ptds "cudaMemcpy2DArrayToArray"
    cudaMemcpy2DAsync_ptsz "cudaMemcpy2DAsync"
    cudaMemcpy2DFromArrayAsync_ptsz "cudaMemcpy2DFromArrayAsync"
    cudaMemcpy2DFromArray_ptds "cudaMemcpy2DFromArray"
    cudaMemcpy2DToArrayAsync_ptsz "cudaMemcpy2DToArrayAsync"
    cudaMemcpy2DToArray_ptds "cudaMemcpy2DToArray"
    cudaMemcpy2D_ptds "cudaMemcpy2D"
    cudaMemcpy3DAsync_ptsz "cudaMemcpy3DAsync"
    cudaMemcpy3DBatchAsync_ptsz "cudaMemcpy3DBatchAsync"
    cudaMemcpy3DPeerAsync_ptsz "cudaMemcpy3DPeerAsync"
    cudaMemcpy3DPeer_ptds "cudaMemcpy3DPeer"
    cudaMemcpy3D_ptds "cudaMemcpy3D"
    cudaMemcpyArrayToArray_ptds "cudaMemcpyArrayToArray"
    cudaMemcpyAsync_ptsz "cudaMemcpyAsync"
    cudaMemcpyBatchAsync_ptsz "cudaMemcpyBatchAsync"
    cudaMemcpyFromArrayAsync_ptsz "cudaMemcpyFromArrayAsync"
    cudaMemcpyFromArray_ptds "cudaMemcpyFromArray"
    cudaMemcpyFromSymbolAsync_ptsz "cudaMemcpyFromSymbolAsync"
    cudaMemcpyFromSymbol_ptds "cudaMemcpyFromSymbol"
    cudaMemcpyToArrayAsync_ptsz "cudaMemcpyToArrayAsync"
    cudaMemcpyToArray_ptds "cudaMemcpyToArray"
    cudaMemcpyToSymbolAsync_ptsz "cudaMemcpyToSymbolAsync"
    cudaMemcpyToSymbol_ptds "cudaMemcpyToSymbol"
    cudaMemcpy_ptds "cudaMemcpy"
    cudaMemset2DAsync_ptsz "cudaMemset2DAsync"
    cudaMemset2D_ptds "cudaMemset2D"
    cudaMemset3DAsync_ptsz "cudaMemset3DAsync"
    cudaMemset3D_ptds "cudaMemset3D"
    cudaMemsetAsync_ptsz "cudaMemsetAsync"
    cudaMemset_ptds "cudaMemset"
    cudaSignalExternalSemaphoresAsync_ptsz "cudaSignalExternalSemaphoresAsync"
    cudaStreamAddCallback_ptsz "cudaStreamAddCallback"
    cudaStreamAttachMemAsync_ptsz "cudaStreamAttachMemAsync"
    cudaStreamBeginCaptureToGraph_ptsz "cudaStreamBeginCaptureToGraph"
    cudaStreamBeginCapture_ptsz "cudaStreamBeginCapture"
    cudaStreamCopyAttributes_ptsz "cudaStreamCopyAttributes"
    cudaStreamEndCapture_ptsz "cudaStreamEndCapture"
    cudaStreamGetAttribute_ptsz "cudaStreamGetAttribute"
    cudaStreamGetCaptureInfo_ptsz "cudaStreamGetCaptureInfo"
    cudaStreamGetDevice_ptsz "cudaStreamGetDevice"
    cudaStreamGetFlags_ptsz "cudaStreamGetFlags"
    cudaStreamGetId_ptsz "cudaStreamGetId"
    cudaStreamGetPriority_ptsz "cudaStreamGetPriority"
    cudaStreamIsCapturing_ptsz "cudaStreamIsCapturing"
    cudaStreamQuery_ptsz "cudaStreamQuery"
    cudaStreamSetAttribute_ptsz "cudaStreamSetAttribute"
    cudaStreamSynchronize_ptsz "cudaStreamSynchronize"
    cudaStreamUpdateCaptureDependencies_ptsz "cudaStreamUpdateCaptureDependencies"
    cudaStreamWaitEvent_ptsz "cudaStreamWaitEvent"
    cudaWaitExternalSemaphoresAsync_ptsz "cudaWaitExternalSemaphoresAsync"
}
