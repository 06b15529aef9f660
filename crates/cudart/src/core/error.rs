//! CUDA's error codes, with their names and texts as `cudaGetErrorName` and `cudaGetErrorString` give them.

/// A `cudaError_t` other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CudaError(pub(crate) i32);

/// The result of a call of the runtime.
pub(crate) type Result<T = ()> = std::result::Result<T, CudaError>;

macro_rules! errors {
    (
        $($constant:ident = $code:literal, $name:literal, $text:literal;)*
        // Errors that are known, but which nothing here gives.
        $(- $other:literal, $other_name:literal, $other_text:literal;)*
    ) => {
        impl CudaError {
            $(pub(crate) const $constant: CudaError = CudaError($code);)*
        }
        /// Code, name and text, each of the two ending with a NUL for C.
        const ERRORS: &[(i32, &str, &str)] = &[
            (0, "cudaSuccess\0", "no error\0"),
            $(($code, concat!($name, "\0"), concat!($text, "\0")),)*
            $(($other, concat!($other_name, "\0"), concat!($other_text, "\0")),)*
        ];
    };
}

errors! {
    INVALID_VALUE = 1, "cudaErrorInvalidValue", "invalid argument";
    MEMORY_ALLOCATION = 2, "cudaErrorMemoryAllocation", "out of memory";
    INITIALIZATION = 3, "cudaErrorInitializationError", "initialization error";
    INVALID_CONFIGURATION = 9, "cudaErrorInvalidConfiguration", "invalid configuration argument";
    INVALID_PITCH = 12, "cudaErrorInvalidPitchValue", "invalid pitch argument";
    INVALID_SYMBOL = 13, "cudaErrorInvalidSymbol", "invalid device symbol";
    INVALID_TEXTURE = 18, "cudaErrorInvalidTexture", "invalid texture reference";
    INVALID_CHANNEL_DESCRIPTOR = 20, "cudaErrorInvalidChannelDescriptor", "invalid channel descriptor";
    INVALID_MEMCPY_DIRECTION = 21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy";
    MISSING_CONFIGURATION = 52, "cudaErrorMissingConfiguration", "__global__ function call is not configured";
    INVALID_DEVICE_FUNCTION = 98, "cudaErrorInvalidDeviceFunction", "invalid device function";
    INVALID_DEVICE = 101, "cudaErrorInvalidDevice", "invalid device ordinal";
    INVALID_KERNEL_IMAGE = 200, "cudaErrorInvalidKernelImage", "device kernel image is invalid";
    INVALID_CONTEXT = 201, "cudaErrorDeviceUninitialized", "invalid device context";
    NO_KERNEL_IMAGE = 209, "cudaErrorNoKernelImageForDevice",
        "no kernel image is available for execution on the device";
    UNSUPPORTED_LIMIT = 215, "cudaErrorUnsupportedLimit", "limit is not supported on this architecture";
    PEER_ACCESS_UNSUPPORTED = 217, "cudaErrorPeerAccessUnsupported",
        "peer access is not supported between these two devices";
    INVALID_PTX = 218, "cudaErrorInvalidPtx", "a PTX JIT compilation failed";
    FILE_NOT_FOUND = 301, "cudaErrorFileNotFound", "file not found";
    INVALID_RESOURCE_HANDLE = 400, "cudaErrorInvalidResourceHandle", "invalid resource handle";
    ILLEGAL_STATE = 401, "cudaErrorIllegalState",
        "the operation cannot be performed in the present state";
    SYMBOL_NOT_FOUND = 500, "cudaErrorSymbolNotFound", "named symbol not found";
    NOT_READY = 600, "cudaErrorNotReady", "device not ready";
    ILLEGAL_ADDRESS = 700, "cudaErrorIllegalAddress", "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch";
    LAUNCH_TIMEOUT = 702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated";
    PEER_ACCESS_NOT_ENABLED = 705, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled";
    ASSERT = 710, "cudaErrorAssert", "device-side assert triggered";
    ALREADY_REGISTERED = 712, "cudaErrorHostMemoryAlreadyRegistered",
        "part or all of the requested memory range is already mapped";
    NOT_REGISTERED = 713, "cudaErrorHostMemoryNotRegistered",
        "pointer does not correspond to a registered memory region";
    HARDWARE_STACK = 714, "cudaErrorHardwareStackError", "hardware stack error";
    ILLEGAL_INSTRUCTION = 715, "cudaErrorIllegalInstruction", "an illegal instruction was encountered";
    MISALIGNED_ADDRESS = 716, "cudaErrorMisalignedAddress", "misaligned address";
    INVALID_PC = 718, "cudaErrorInvalidPc", "invalid program counter";
    LAUNCH_FAILURE = 719, "cudaErrorLaunchFailure", "unspecified launch failure";
    COOPERATIVE_TOO_LARGE = 720, "cudaErrorCooperativeLaunchTooLarge",
        "too many blocks in cooperative launch";
    NOT_SUPPORTED = 801, "cudaErrorNotSupported", "operation not supported";
    CAPTURE_UNSUPPORTED = 900, "cudaErrorStreamCaptureUnsupported",
        "operation not permitted when stream is capturing";
    CAPTURE_INVALIDATED = 901, "cudaErrorStreamCaptureInvalidated",
        "operation failed due to a previous error during capture";
    CAPTURE_MERGE = 902, "cudaErrorStreamCaptureMerge",
        "operation would result in a merge of separate capture sequences";
    CAPTURE_UNMATCHED = 903, "cudaErrorStreamCaptureUnmatched",
        "capture was not ended in the same stream as it began";
    CAPTURE_UNJOINED = 904, "cudaErrorStreamCaptureUnjoined",
        "capturing stream has unjoined work";
    CAPTURE_ISOLATION = 905, "cudaErrorStreamCaptureIsolation",
        "dependency created on uncaptured work in another stream";
    GRAPH_UPDATE_FAILURE = 910, "cudaErrorGraphExecUpdateFailure", "the graph update was not performed";
    INVALID_CLUSTER_SIZE = 912, "cudaErrorInvalidClusterSize", "cluster misconfiguration";
    - 4, "cudaErrorCudartUnloading", "driver shutting down";
    - 100, "cudaErrorNoDevice", "no CUDA-capable device is detected";
    - 704, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled";
    - 906, "cudaErrorStreamCaptureImplicit",
        "operation would make the legacy stream depend on a capturing blocking stream";
    - 999, "cudaErrorUnknown", "unknown error";
}

/// Name of an error, with a NUL at its end.
pub(crate) fn name(code: i32) -> &'static str {
    find(code).map_or("unrecognized error code\0", |(_, name, _)| name)
}

/// Text of an error, with a NUL at its end.
pub(crate) fn text(code: i32) -> &'static str {
    find(code).map_or("unrecognized error code\0", |(_, _, text)| text)
}

fn find(code: i32) -> Option<&'static (i32, &'static str, &'static str)> {
    ERRORS.iter().find(|(known, ..)| *known == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts() {
        assert_eq!((name(0), text(0)), ("cudaSuccess\0", "no error\0"));
        let illegal = CudaError::ILLEGAL_ADDRESS.0;
        assert_eq!(name(illegal), "cudaErrorIllegalAddress\0");
        assert_eq!(text(illegal), "an illegal memory access was encountered\0");
        assert_eq!(name(12345), "unrecognized error code\0");
    }
}
