//! A connection to a real Redis: one command, one answer.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// A connection to a Redis.
pub(crate) struct RedisClient(BufReader<TcpStream>);

impl RedisClient {
    pub(crate) fn connect(address: impl ToSocketAddrs) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// The first line of an answer, and for a text its content.
    pub(crate) fn ask(&mut self, words: &str) -> std::io::Result<String> {
        self.0.get_mut().write_all(format!("{words}\r\n").as_bytes())?;
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let Some(length) = line.strip_prefix('$').and_then(|rest| rest.trim().parse::<usize>().ok()) else {
            return Ok(line.trim_end().to_owned());
        };
        let mut bytes = vec![0; length + 2];
        std::io::Read::read_exact(&mut self.0, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }
}
