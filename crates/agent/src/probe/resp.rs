//! The protocol of Redis (RESP 2), as far as probes need it: a command, and its answer within a limit.

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::address::{broken, connect};
use super::answer::{MAX_ANSWER_BYTES, ProbeError, password};
use super::tls::connect_tls;
use crate::config::data_store::{Login, TlsFiles};

/// Deepest nesting of an answer: a list of lists of texts.
const MAX_DEPTH: usize = 4;

/// What a connection is made of.
trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug> ByteStream for S {}

/// A connection to a Redis or a Sentinel.
#[derive(Debug)]
pub(crate) struct Redis {
    address: String,
    stream: BufReader<Box<dyn ByteStream>>,
    /// Bytes that may still be read.
    room: usize,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Reply>),
    /// Nothing.
    Null,
}

impl Redis {
    /// Connects, and logs in if there is a password.
    pub(super) async fn connect(address: &str, login: &Login) -> Result<Self, ProbeError> {
        let mut redis = Self::over(address, Box::new(connect(address).await?));
        if let Some(password) = password(login).await? {
            let words: Vec<&str> =
                ["AUTH"].into_iter().chain(login.user.as_deref()).chain([&*password]).collect();
            redis.call(&words).await?;
        }
        Ok(redis)
    }

    /// Connects without a password, by TLS if there are certificates.
    pub(crate) async fn connect_with(address: &str, tls: Option<&TlsFiles>) -> Result<Self, ProbeError> {
        Ok(match tls {
            Some(files) => Self::over(address, Box::new(connect_tls(address, files).await?)),
            None => Self::over(address, Box::new(connect(address).await?)),
        })
    }

    fn over(address: &str, stream: Box<dyn ByteStream>) -> Self {
        Self { address: address.to_owned(), stream: BufReader::new(stream), room: MAX_ANSWER_BYTES }
    }

    /// One that has answered these bytes, and nothing else.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn of(bytes: &[u8]) -> Self {
        let answered = tokio::io::join(std::io::Cursor::new(bytes.to_vec()), tokio::io::sink());
        Self::over("store:1", Box::new(answered))
    }

    /// Sends a command and reads its answer.
    ///
    /// # Errors
    /// [`ProbeError`]; an error that Redis answers is unknown, unless it says that it does not serve.
    pub(crate) async fn call(&mut self, words: &[&str]) -> Result<Reply, ProbeError> {
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            command.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        let sent = self.stream.get_mut().write_all(command.as_bytes()).await;
        sent.map_err(|error| broken(&self.address, &error))?;
        self.reply().await
    }

    /// Reads an answer.
    pub(super) async fn reply(&mut self) -> Result<Reply, ProbeError> {
        self.room = MAX_ANSWER_BYTES;
        self.reply_within(MAX_DEPTH).await
    }

    /// Sends a command whose answer is a text.
    pub(crate) async fn text(&mut self, words: &[&str]) -> Result<String, ProbeError> {
        match self.call(words).await? {
            Reply::Text(text) => Ok(text),
            Reply::List(_) | Reply::Null => Err(self.nonsense("a text was expected")),
        }
    }

    fn nonsense(&self, reason: &str) -> ProbeError {
        ProbeError::Unknown(format!("{}: the answer is not one of Redis: {reason}", self.address))
    }

    fn take_room(&mut self, bytes: usize) -> Result<(), ProbeError> {
        let left = self.room.checked_sub(bytes);
        let large = || format!("{}: the answer has more than {MAX_ANSWER_BYTES} bytes", self.address);
        self.room = left.ok_or_else(|| ProbeError::Unknown(large()))?;
        Ok(())
    }

    async fn line(&mut self) -> Result<String, ProbeError> {
        let mut line = Vec::new();
        let most = u64::try_from(self.room).unwrap_or(u64::MAX).saturating_add(1);
        let read = (&mut self.stream).take(most).read_until(b'\n', &mut line).await;
        read.map_err(|error| broken(&self.address, &error))?;
        self.take_room(line.len())?;
        if line.pop() != Some(b'\n') || line.pop() != Some(b'\r') {
            let end = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(if line.is_empty() {
                broken(&self.address, &end)
            } else {
                self.nonsense("a line does not end")
            });
        }
        String::from_utf8(line).map_err(|_| self.nonsense("a line is not UTF-8"))
    }

    async fn reply_within(&mut self, depth: usize) -> Result<Reply, ProbeError> {
        let line = self.line().await?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| self.nonsense("an empty line"))?;
        match kind {
            "+" | ":" => Ok(Reply::Text(rest.to_owned())),
            "-" => Err(self.refusal(rest)),
            "$" if rest == "-1" => Ok(Reply::Null),
            "*" if rest == "-1" => Ok(Reply::Null),
            "$" => {
                let length: usize = rest.parse().map_err(|_| self.nonsense("a length that is no number"))?;
                self.take_room(length)?;
                let mut bytes = vec![0; length + 2];
                let read = self.stream.read_exact(&mut bytes).await;
                read.map_err(|error| broken(&self.address, &error))?;
                bytes.truncate(length);
                String::from_utf8(bytes).map(Reply::Text).map_err(|_| self.nonsense("a text is not UTF-8"))
            }
            "*" => {
                let count: usize = rest.parse().map_err(|_| self.nonsense("a length that is no number"))?;
                let depth = depth.checked_sub(1).ok_or_else(|| self.nonsense("lists within lists"))?;
                // Each takes a line at least.
                self.take_room(count)?;
                let mut list = Vec::new();
                for _ in 0..count {
                    list.push(Box::pin(self.reply_within(depth)).await?);
                }
                Ok(Reply::List(list))
            }
            _ => Err(self.nonsense("an unknown kind of reply")),
        }
    }

    fn refusal(&self, text: &str) -> ProbeError {
        let reason = format!("{}: {text}", self.address);
        let does_not_serve =
            ["LOADING", "MASTERDOWN", "CLUSTERDOWN"].iter().any(|word| text.starts_with(word));
        if does_not_serve { ProbeError::Down(reason) } else { ProbeError::Unknown(reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Result<Reply, ProbeError> {
        Redis::of(bytes).reply().await
    }

    #[tokio::test]
    async fn answers_of_each_kind_are_read_and_no_more_than_a_limit_is_kept_for_what_is_announced() {
        let text = |text: &str| Reply::Text(text.to_owned());
        assert_eq!(read(b"+OK\r\n").await, Ok(text("OK")));
        assert_eq!(read(b"$5\r\nhello\r\n").await, Ok(text("hello")));
        assert_eq!(read(b"*2\r\n:1\r\n*-1\r\n").await, Ok(Reply::List(vec![text("1"), Reply::Null])));
        for (bytes, reason) in [
            (&b"$99999999999\r\n"[..], "more than"),
            (b"*99999999999\r\n", "more than"),
            (b"$-2\r\n", "no number"),
            (b"?\r\n", "unknown kind"),
            (b"\r\n", "an empty line"),
            (b"+OK\n", "does not end"),
            (b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "lists within lists"),
        ] {
            let Err(ProbeError::Unknown(said)) = read(bytes).await else { panic!("{bytes:?} is refused") };
            assert!(said.contains(reason), "{said}");
        }
        assert!(matches!(read(b"").await, Err(ProbeError::Broken(_))), "it is closed");
        assert!(matches!(read(b"-LOADING its data\r\n").await, Err(ProbeError::Down(_))));
    }
}
