/** Promises: the machine on which this program runs does for attempts what is promised of every machine. */
import { hostTests } from '../../support/worker/conformance.ts';
import { openHere } from '../../support/worker/tested-host.ts';

hostTests('this machine', async (folder) => openHere(folder));
