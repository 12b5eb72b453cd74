/** Where the workflow configurations and documents are that come with this program. */
import { join } from 'node:path';
import { packageRoot } from '../../system/own-program.ts';

export const shippedFaber = join(packageRoot, 'templates', 'faber');
