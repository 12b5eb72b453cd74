/** What scripts/release.ts puts into a released program: files of the package, by their paths in it. */
declare module 'package-files' {
  const files: Readonly<Record<string, { readonly text: string; readonly mode: number }>>;
  export default files;
}
