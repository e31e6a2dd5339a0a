//! Messages over TCP: the length of each comes first, in two bytes (RFC 1035, 4.2.2).

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Receives the next message; an error at the end of the stream, or if the message has more than `most` bytes.
pub(crate) async fn receive(
    stream: &mut (impl AsyncRead + Unpin),
    most: u16,
) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    if length > most {
        return Err(io::Error::other(format!(
            "a message of {length} bytes, more than {most}"
        )));
    }
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

/// Sends a message; an error if it is longer than 65,535 bytes.
pub(crate) async fn send(stream: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(message);
    stream.write_all(&bytes).await
}
