/** Modules that the program loads on demand: here they must be loaded, because nothing real is waited for. */
import '../../../../src/git/unexpected-changes.ts';
import '../../../../src/git/commit.ts';
import '../../../../src/git/ignored-output.ts';
import '../../../../src/git/leftover-files.ts';
import '../../../../src/runner/late-costs.ts';
import '../../../../src/runner/open-fleet.ts';
import '../../../../src/worker/attempt/checks.ts';
import '../../../../src/worker/prepare/handover-files.ts';
import '../../../../src/worker/prepare/workspace-links.ts';
import '../../../../src/worker/prepare/worktree-setup.ts';
