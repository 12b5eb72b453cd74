/** What the program loads only when it is needed: here it has to be there, for nothing real is waited for. */
import '../../../../src/git/appeared.ts';
import '../../../../src/git/commit.ts';
import '../../../../src/git/ignored-output.ts';
import '../../../../src/git/leftover-files.ts';
import '../../../../src/runner/book-late.ts';
import '../../../../src/runner/open-fleet.ts';
import '../../../../src/worker/prepare/handover.ts';
import '../../../../src/worker/prepare/surroundings.ts';
import '../../../../src/worker/prepare/worktree-place.ts';
