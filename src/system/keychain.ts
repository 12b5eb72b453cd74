/** macOS keeps logins in a keychain, which belongs to the user whatever HOME says. */
export const hasKeychain = process.platform === 'darwin';
