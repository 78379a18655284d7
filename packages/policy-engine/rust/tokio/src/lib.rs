//! What cedar-policy-symcc uses of tokio, where there are no processes, no threads and no clock.
//! The engine gives it writers that are ready at once; what would start or wait for a solver is an error.

use std::future::Future;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

fn unsupported() -> Error {
    Error::new(ErrorKind::Unsupported, "WebAssembly has no processes")
}

/// A future that nobody runs: it is only ever the return of a pooled solver, and there is none.
pub fn spawn<F: Future>(_future: F) {}

pub mod io {
    use super::{Context, Future, Pin, Poll, unsupported};
    pub use std::io::Result;

    pub trait AsyncWrite {
        fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>>;
        fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>>;
        fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>>;
    }

    impl AsyncWrite for Vec<u8> {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
            self.extend_from_slice(bytes);
            Poll::Ready(Ok(bytes.len()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl<W: AsyncWrite + Unpin + ?Sized> AsyncWrite for &mut W {
        fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
            Pin::new(&mut **self).poll_write(context, bytes)
        }
        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
            Pin::new(&mut **self).poll_flush(context)
        }
        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
            Pin::new(&mut **self).poll_shutdown(context)
        }
    }

    pub struct WriteAll<'a, W: ?Sized> {
        writer: &'a mut W,
        bytes: &'a [u8],
    }

    impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteAll<'_, W> {
        type Output = Result<()>;
        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
            while !self.bytes.is_empty() {
                let bytes = self.bytes;
                match Pin::new(&mut *self.writer).poll_write(context, bytes) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(unsupported())),
                    Poll::Ready(Ok(written)) => self.bytes = &bytes[written..],
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(Ok(()))
        }
    }

    pub struct Flush<'a, W: ?Sized>(&'a mut W);

    impl<W: AsyncWrite + Unpin + ?Sized> Future for Flush<'_, W> {
        type Output = Result<()>;
        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
            Pin::new(&mut *self.0).poll_flush(context)
        }
    }

    pub trait AsyncWriteExt: AsyncWrite {
        fn write_all<'a>(&'a mut self, bytes: &'a [u8]) -> WriteAll<'a, Self> {
            WriteAll { writer: self, bytes }
        }
        fn flush(&mut self) -> Flush<'_, Self> {
            Flush(self)
        }
    }
    impl<W: AsyncWrite + ?Sized> AsyncWriteExt for W {}

    #[derive(Debug)]
    pub struct BufWriter<W>(W);
    impl<W> BufWriter<W> {
        pub fn new(inner: W) -> Self {
            Self(inner)
        }
    }
    impl<W: AsyncWrite + Unpin> AsyncWrite for BufWriter<W> {
        fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
            Pin::new(&mut self.0).poll_write(context, bytes)
        }
        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }
        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    #[derive(Debug)]
    pub struct BufReader<R>(#[allow(dead_code, reason = "nothing is ever read")] R);
    impl<R> BufReader<R> {
        pub fn new(inner: R) -> Self {
            Self(inner)
        }
    }

    pub trait AsyncBufReadExt {
        fn read_line<'a>(&'a mut self, line: &'a mut String) -> std::future::Ready<Result<usize>>;
    }
    impl<R> AsyncBufReadExt for BufReader<R> {
        fn read_line<'a>(&'a mut self, _: &'a mut String) -> std::future::Ready<Result<usize>> {
            std::future::ready(Err(unsupported()))
        }
    }
}

pub mod process {
    use super::io::AsyncWrite;
    use super::{Context, Pin, Poll, Result, unsupported};
    use std::ffi::OsStr;
    use std::process::{ExitStatus, Stdio};

    #[derive(Debug)]
    pub struct Command;
    impl Command {
        pub fn new(_: impl AsRef<OsStr>) -> Self {
            Self
        }
        pub fn args(&mut self, _: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
            self
        }
        pub fn stdin(&mut self, _: impl Into<Stdio>) -> &mut Self {
            self
        }
        pub fn stdout(&mut self, _: impl Into<Stdio>) -> &mut Self {
            self
        }
        pub fn stderr(&mut self, _: impl Into<Stdio>) -> &mut Self {
            self
        }
        pub fn spawn(&mut self) -> Result<Child> {
            Err(unsupported())
        }
    }

    #[derive(Debug)]
    pub struct Child {
        pub stdin: Option<ChildStdin>,
        pub stdout: Option<ChildStdout>,
        pub stderr: Option<ChildStderr>,
    }
    impl Child {
        pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
            Err(unsupported())
        }
        pub async fn kill(&mut self) -> Result<()> {
            Err(unsupported())
        }
    }

    #[derive(Debug)]
    pub struct ChildStdin;
    #[derive(Debug)]
    pub struct ChildStdout;
    #[derive(Debug)]
    pub struct ChildStderr;

    impl AsyncWrite for ChildStdin {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<Result<usize>> {
            Poll::Ready(Err(unsupported()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Err(unsupported()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Err(unsupported()))
        }
    }
}

pub mod sync {
    use std::sync::{Arc, MutexGuard, PoisonError};

    #[derive(Debug)]
    pub struct Mutex<T>(std::sync::Mutex<T>);
    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }
        pub async fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    #[derive(Debug)]
    pub struct Semaphore(usize);
    #[derive(Debug)]
    pub struct OwnedSemaphorePermit;
    #[derive(Debug)]
    pub struct AcquireError;
    impl Semaphore {
        pub fn new(permits: usize) -> Self {
            Self(permits)
        }
        pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
            Err(AcquireError)
        }
        pub fn available_permits(&self) -> usize {
            self.0
        }
    }
}

pub mod time {
    use std::future::Future;
    use std::time::Duration;

    #[derive(Debug)]
    pub struct Elapsed;

    pub async fn timeout<F: Future>(_: Duration, future: F) -> Result<F::Output, Elapsed> {
        Ok(future.await)
    }
}
