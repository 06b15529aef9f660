//! Fat binaries: the container in which nvcc puts a program's kernels, as PTX and as machine code for several
//! architectures. The PTX is what the simulator runs.
//!
//! A container is a header (magic, version, header size, size of what follows) and entries. An entry has a header with
//! its kind, size, architecture and compression, and then its payload.

use std::io::Read;

/// The container's first word.
pub(crate) const MAGIC: u32 = 0xBA55_ED50;

/// Size of the container's header: magic, version, header size, size of the entries.
pub(crate) const HEADER_BYTES: usize = 16;

const KIND_PTX: u16 = 1;
const LZ4: u64 = 0x2000;
const ZSTANDARD: u64 = 0x8000;

/// No PTX of a real program is larger; a damaged size must not take the host's memory.
const MOST_PTX_BYTES: u64 = 1 << 30;

/// The images of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FatBinary {
    pub(crate) ptx: Vec<Ptx>,
    /// Architectures of the machine code: 90 for sm_90.
    pub(crate) machine_code: Vec<u32>,
}

/// A PTX image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ptx {
    /// 90 for compute_90.
    pub(crate) arch: u32,
    pub(crate) text: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FatBinaryError {
    #[error("it does not begin with the magic number {MAGIC:#x} of a fat binary")]
    Magic,
    #[error("its bytes end inside of {0}")]
    Cut(&'static str),
    #[error("a PTX image of {0} bytes is larger than any")]
    TooLarge(u64),
    #[error("a PTX image cannot be decompressed ({0})")]
    Compression(String),
}

/// Size of a whole container, by its header.
pub(crate) fn total_bytes(header: &[u8; HEADER_BYTES]) -> Result<usize, FatBinaryError> {
    if word(header, 0)? as u32 != MAGIC {
        return Err(FatBinaryError::Magic);
    }
    let header_bytes = number(header, 6, 2)?;
    let rest = number(header, 8, 8)?;
    let total = header_bytes.checked_add(rest).and_then(|total| usize::try_from(total).ok());
    total.ok_or(FatBinaryError::TooLarge(rest))
}

/// Reads a container.
pub(crate) fn read(bytes: &[u8]) -> Result<FatBinary, FatBinaryError> {
    if word(bytes, 0)? as u32 != MAGIC {
        return Err(FatBinaryError::Magic);
    }
    let mut at = number(bytes, 6, 2)? as usize;
    let end = bytes.len().min(at.saturating_add(number(bytes, 8, 8)? as usize));
    let mut found = FatBinary::default();
    while at + 64 <= end {
        let entry = &bytes[at..end];
        let kind = number(entry, 0, 2)? as u16;
        let (header_bytes, payload_bytes) = (word(entry, 4)? as usize, number(entry, 8, 8)?);
        let arch = word(entry, 28)? as u32;
        let next = usize::try_from(payload_bytes).ok().and_then(|bytes| bytes.checked_add(header_bytes));
        let next = next.filter(|&next| next > 0).ok_or(FatBinaryError::Cut("an image's header"))?;
        let payload = entry.get(header_bytes..next).ok_or(FatBinaryError::Cut("an image"))?;
        match kind {
            KIND_PTX => found.ptx.push(Ptx { arch, text: ptx_text(entry, payload)? }),
            _ => found.machine_code.push(arch),
        }
        at += next;
    }
    Ok(found)
}

/// The text of a PTX entry, decompressed.
fn ptx_text(header: &[u8], payload: &[u8]) -> Result<String, FatBinaryError> {
    let flags = number(header, 40, 8)?;
    let (packed_bytes, text_bytes) = (word(header, 16)? as usize, number(header, 56, 8)?);
    if flags & (LZ4 | ZSTANDARD) == 0 {
        return Ok(text(payload.to_vec()));
    }
    if text_bytes > MOST_PTX_BYTES {
        return Err(FatBinaryError::TooLarge(text_bytes));
    }
    let packed = payload.get(..packed_bytes).ok_or(FatBinaryError::Cut("a compressed image"))?;
    let mut bytes = vec![0; text_bytes as usize];
    if flags & LZ4 != 0 {
        let unpacked = lz4_flex::block::decompress_into(packed, &mut bytes);
        let unpacked = unpacked.map_err(|error| FatBinaryError::Compression(error.to_string()))?;
        bytes.truncate(unpacked);
    } else {
        let compression = |error: String| FatBinaryError::Compression(error);
        let mut decoder = ruzstd::decoding::StreamingDecoder::new(packed)
            .map_err(|error| compression(error.to_string()))?;
        bytes.clear();
        let limit = text_bytes;
        let read = decoder.by_ref().take(limit).read_to_end(&mut bytes);
        read.map_err(|error| compression(error.to_string()))?;
    }
    Ok(text(bytes))
}

/// PTX is ASCII, padded with zeros.
fn text(mut bytes: Vec<u8>) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn word(bytes: &[u8], at: usize) -> Result<u64, FatBinaryError> {
    number(bytes, at, 4)
}

fn number(bytes: &[u8], at: usize, count: usize) -> Result<u64, FatBinaryError> {
    let field = bytes.get(at..at + count).ok_or(FatBinaryError::Cut("a header"))?;
    Ok(field.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u16, arch: u32, flags: u64, payload: &[u8], text_bytes: usize) -> Vec<u8> {
        let padded = payload.len().next_multiple_of(8);
        let mut bytes = Vec::new();
        bytes.extend(kind.to_le_bytes());
        bytes.extend(0x101u16.to_le_bytes());
        bytes.extend(64u32.to_le_bytes());
        bytes.extend((padded as u64).to_le_bytes());
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(arch.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(flags.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend((text_bytes as u64).to_le_bytes());
        bytes.extend(payload);
        bytes.resize(64 + padded, 0);
        bytes
    }

    fn container(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend(1u16.to_le_bytes());
        bytes.extend(16u16.to_le_bytes());
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

    #[test]
    fn plain_and_compressed_ptx_beside_machine_code() {
        let lz4 = lz4_flex::block::compress(TEXT.as_bytes());
        let zstd = ruzstd::encoding::compress_to_vec(
            TEXT.as_bytes(),
            ruzstd::encoding::CompressionLevel::Uncompressed,
        );
        let bytes = container(&[
            entry(2, 80, 0, b"machine code", 0),
            entry(1, 75, 0, TEXT.as_bytes(), 0),
            entry(1, 80, LZ4, &lz4, TEXT.len()),
            entry(1, 90, ZSTANDARD, &zstd, TEXT.len()),
        ]);
        assert_eq!(total_bytes(bytes[..16].try_into().unwrap()), Ok(bytes.len()));
        let found = read(&bytes).unwrap();
        let ptx = |arch| Ptx { arch, text: TEXT.to_string() };
        assert_eq!(found, FatBinary { ptx: vec![ptx(75), ptx(80), ptx(90)], machine_code: vec![80] });
    }

    #[test]
    fn damaged_containers_are_refused() {
        let whole = container(&[entry(1, 75, LZ4, &[0xff; 24], 4096)]);
        assert_eq!(read(&[1; 80]), Err(FatBinaryError::Magic));
        assert_eq!(read(&whole[..10]), Err(FatBinaryError::Cut("a header")));
        assert_eq!(read(&whole[..90]), Err(FatBinaryError::Cut("an image")));
        assert!(matches!(read(&whole), Err(FatBinaryError::Compression(_))));
        let huge = container(&[entry(1, 75, ZSTANDARD, &[0; 8], usize::MAX)]);
        assert!(matches!(read(&huge), Err(FatBinaryError::TooLarge(_))));
    }
}
