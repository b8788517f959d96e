//! What becomes of memory that is free again.
//!
//! The allocator of glibc gives large blocks back to the system as soon as they are free, and the
//! system has to clear each page before it gives it out again. For messages of a megabyte that is
//! more work than anything that is done with them. So free memory is kept for a while, and given
//! back when nobody needed it any more.

use std::num::NonZero;

/// How much free memory is kept, in bytes, by all threads together.
const KEPT: usize = 64 * 1024 * 1024;

/// How much each thread may keep however many there are.
const LEAST: usize = 2 * 1024 * 1024;

/// Has free memory kept by a process with so many threads that do most of the work.
pub fn keep_what_is_free(threads: NonZero<usize>) {
    system::keep_what_is_free((KEPT / threads).max(LEAST));
}

/// Has the system give us now, and in one go, so much memory that is to be allocated in a moment: it
/// is slow to do so page by page, whenever another one is touched.
pub fn foresee(bytes: usize) {
    let soon = Vec::<u8>::with_capacity(bytes);
    system::populate(soon.as_ptr(), bytes);
}

/// Gives memory that is free back to the system.
pub fn give_back_what_is_free() {
    system::give_back_what_is_free();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    /// The largest blocks that the allocator will keep at all.
    const LARGEST: usize = 32 * 1024 * 1024;

    #[expect(
        unsafe_code,
        reason = "there is no safe way to the allocator's settings"
    )]
    pub(super) fn keep_what_is_free(kept: usize) {
        let number = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: Both settings may be changed at any time, from any thread, and take any value; one
        // that the allocator does not like leaves things as they are.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, number(kept.min(LARGEST)));
            libc::mallopt(libc::M_TRIM_THRESHOLD, number(kept));
        }
    }

    #[expect(unsafe_code, reason = "there is no safe way to pages")]
    pub(super) fn populate(start: *const u8, bytes: usize) {
        const PAGE: usize = 4096;
        let before = start.align_offset(PAGE);
        let pages = bytes.saturating_sub(before) / PAGE * PAGE;
        let first = start.wrapping_add(before).cast_mut().cast();
        // SAFETY: It changes nothing that can be read, wherever it is; a system that cannot do it
        // says so, and nobody cares.
        unsafe {
            libc::madvise(first, pages, libc::MADV_POPULATE_WRITE);
        }
    }

    #[expect(unsafe_code, reason = "there is no safe way to the allocator")]
    pub(super) fn give_back_what_is_free() {
        // SAFETY: It touches nothing but what is free, and locks out whoever allocates meanwhile.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

/// Other allocators know better, or are not asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    pub(super) fn keep_what_is_free(_kept: usize) {}

    pub(super) fn populate(_start: *const u8, _bytes: usize) {}

    pub(super) fn give_back_what_is_free() {}
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    const BLOCK: usize = 8 * 1024 * 1024;

    fn resident() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages = statm.split(' ').nth(1).unwrap();
        pages.parse::<usize>().unwrap() * 4096
    }

    #[test]
    fn what_is_foreseen_is_there() {
        keep_what_is_free(NonZero::<usize>::MIN);
        let before = resident();
        foresee(BLOCK);
        assert!(resident() >= before + BLOCK / 2);
    }

    /// Large blocks that come and go are not asked for at the system each time.
    #[test]
    fn what_is_free_is_kept_until_it_is_given_back() {
        keep_what_is_free(NonZero::<usize>::MIN);
        let before = resident();
        let block = std::hint::black_box(vec![1_u8; BLOCK]);
        let _behind_it = std::hint::black_box(vec![1_u8; 4096]);
        drop(block);
        assert!(resident() >= before + BLOCK / 2);
        give_back_what_is_free();
        assert!(resident() < before + BLOCK / 2);
    }
}
