//! Finds variables of a kernel object that outlive a block and are shared by all blocks. AscendC has none: a core's program has no data
//! segment. Reads just enough of a 64-bit little-endian ELF file. Called by [`crate::sim`] after linking.

/// Symbol types and section names: the ELF specification, "Symbol Table" and "Special Sections".
const SHT_SYMTAB: u32 = 2;
const STT_OBJECT: u8 = 1;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;

/// Names (as the linker has them) of variables in writable sections, without those that belong to the emulator's headers and to the C
/// run time. None when the bytes are no ELF file of this kind or have no symbol table.
pub(crate) fn shared_variables(file: &[u8]) -> Option<Vec<String>> {
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let sections = usize::try_from(u64_at(file, 0x28)?).ok()?;
    let count = usize::from(u16_at(file, 0x3C)?);
    let header =
        |i: usize| file.get(sections + i * SECTION_HEADER..sections + (i + 1) * SECTION_HEADER);
    let contents = |i: usize| {
        let header = header(i)?;
        let (start, size) = (
            usize::try_from(u64_at(header, 0x18)?).ok()?,
            usize::try_from(u64_at(header, 0x20)?).ok()?,
        );
        file.get(start..start.checked_add(size)?)
    };
    let names = contents(usize::from(u16_at(file, 0x3E)?))?;
    let writable = |i: usize| {
        let name = header(i)
            .and_then(|h| u32_at(h, 0))
            .and_then(|at| text(names, at))
            .unwrap_or_default();
        (name.starts_with(".data") && !name.starts_with(".data.rel.ro")) || name.starts_with(".bss")
    };
    let table = (0..count).find(|i| header(*i).and_then(|h| u32_at(h, 4)) == Some(SHT_SYMTAB))?;
    let symbol_names = contents(usize::try_from(u32_at(header(table)?, 0x28)?).ok()?)?;
    let mut found: Vec<String> = contents(table)?
        .chunks_exact(SYMBOL)
        .filter(|s| {
            s[4] & 0xF == STT_OBJECT && writable(usize::from(u16::from_le_bytes([s[6], s[7]])))
        })
        .filter_map(|s| text(symbol_names, u32_at(s, 0)?))
        .filter(|name| !ours(name))
        .collect();
    found.sort();
    found.dedup();
    Some(found)
}

/// The emulator's own state (namespace npusim, npusim_bind's table), the C run time's, and guards of statics that are listed themselves.
fn ours(name: &str) -> bool {
    name.starts_with("_ZN6npusim")
        || name.starts_with("_ZZ11npusim_bind")
        || name.starts_with("_ZGV")
        || name.starts_with("__")
        || name.starts_with("completed.")
        || name.starts_with('_') && !name.starts_with("_Z")
}

fn text(table: &[u8], at: u32) -> Option<String> {
    let rest = table.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|b| *b == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_object_have_no_answer() {
        assert_eq!(shared_variables(b"not an object"), None);
        assert_eq!(shared_variables(b"\x7fELF\x02\x01 cut off"), None);
    }
}
