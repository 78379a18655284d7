//! The policy engine behind one JSON call: Cedar and Dogwood decide, Cedar's symbolic compiler asks.
//! The host owns time, processes and storage; nothing here reads a clock, a file or the network.

mod analysis;
mod decide;
mod diagnose;
mod history;
mod index;
mod permits;
mod reference;
mod set;
mod shape;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::collections::HashMap;

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
enum Call {
    Version,
    Load(set::Source),
    Unload { set: String },
    Decide(decide::Request),
    Forget { set: String, session: String },
    Permits(permits::Request),
    Outline { set: String },
    Check(analysis::Check),
    Replay(reference::Replay),
    Cedar(reference::Cedar),
}

#[derive(Default)]
struct Engine {
    sets: HashMap<String, set::LoadedSet>,
}

thread_local!(static ENGINE: RefCell<Engine> = RefCell::new(Engine::default()));

fn run(call: Call) -> Result<Json, String> {
    ENGINE.with_borrow_mut(|engine| match call {
        Call::Version => Ok(json!({
            "cedar": cedar_policy::get_sdk_version().to_string(),
            "language": cedar_policy::get_lang_version().to_string(),
        })),
        Call::Load(source) => {
            let id = source.id.clone();
            engine.sets.remove(&id);
            let (loaded, report) = set::load(source);
            if let Some(loaded) = loaded {
                engine.sets.insert(id, loaded);
            }
            Ok(report)
        }
        Call::Unload { set } => Ok(json!(engine.sets.remove(&set).is_some())),
        Call::Decide(request) => Ok(decide::decide(engine.sets.get_mut(&request.set), request)),
        Call::Forget { set, session } => Ok(json!(
            engine.sets.get_mut(&set).is_some_and(|set| set.sessions.forget(&session))
        )),
        Call::Permits(request) => permits::permits(engine.sets.get_mut(&request.set), &request),
        Call::Outline { set } => engine
            .sets
            .get(&set)
            .map(analysis::outline)
            .ok_or_else(|| "the set is not loaded".to_string()),
        Call::Check(check) => analysis::check(&engine.sets, check),
        Call::Replay(replay) => reference::replay(&replay),
        Call::Cedar(request) => reference::cedar(request),
    })
}

/// One call: JSON in, JSON out; `{"error"}` is a mistake of the host, never of a caller's content.
pub fn call(input: &str) -> String {
    match serde_json::from_str::<Call>(input)
        .map_err(|error| error.to_string())
        .and_then(run)
    {
        Ok(value) => json!({ "ok": value }),
        Err(error) => json!({ "error": error }),
    }
    .to_string()
}

#[cfg(target_arch = "wasm32")]
mod abi {
    #[unsafe(no_mangle)]
    pub extern "C" fn engine_alloc(length: usize) -> *mut u8 {
        let mut buffer = Vec::<u8>::with_capacity(length);
        let pointer = buffer.as_mut_ptr();
        std::mem::forget(buffer);
        pointer
    }

    /// # Safety
    /// `pointer` and `length` are those of one `engine_call` answer.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn engine_free(pointer: *mut u8, length: usize) {
        drop(unsafe { Vec::from_raw_parts(pointer, 0, length) });
    }

    /// Takes the input's buffer; answers `pointer << 32 | length`.
    ///
    /// # Safety
    /// `pointer` is of `engine_alloc(length)`, filled with `length` bytes.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn engine_call(pointer: *mut u8, length: usize) -> u64 {
        let input = unsafe { Vec::from_raw_parts(pointer, length, length) };
        let answer = match std::str::from_utf8(&input) {
            Ok(text) => super::call(text),
            Err(error) => serde_json::json!({ "error": error.to_string() }).to_string(),
        };
        let mut bytes = answer.into_bytes().into_boxed_slice();
        let (at, size) = (bytes.as_mut_ptr() as u64, bytes.len() as u64);
        std::mem::forget(bytes);
        (at << 32) | size
    }

    #[link(wasm_import_module = "host")]
    unsafe extern "C" {
        fn random(pointer: *mut u8, length: usize);
    }

    #[unsafe(no_mangle)]
    unsafe extern "Rust" fn __getrandom_v03_custom(dest: *mut u8, len: usize) -> Result<(), getrandom::Error> {
        unsafe { random(dest, len) };
        Ok(())
    }
}
