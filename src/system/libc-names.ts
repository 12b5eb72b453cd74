/** What the C library is called on Linux; apart from libc.ts, because every start of a worker waits for this. */

/** glibc first, then musl (Alpine) under the names its loader knows. */
export const linuxNames = ['libc.so.6', 'libc.musl-x86_64.so.1', 'libc.musl-aarch64.so.1', 'libc.so'];
