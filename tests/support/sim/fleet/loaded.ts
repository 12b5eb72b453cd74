/** Modules that the program loads on demand: here they must be loaded, because nothing real is waited for. */
import '../../../../src/runner/open-fleet.ts';
import '../../../../src/runner/open-fleet.ts';
