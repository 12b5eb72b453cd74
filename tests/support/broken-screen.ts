/** A program with an open dashboard screen that throws an uncaught exception at the first key press. */
import { loadScreen } from '../../src/cli/dashboard/screen.ts';
import { createRealWorld } from '../../src/system/real-world.ts';

const openScreen = await loadScreen(createRealWorld());
openScreen(
  {
    bands: [[{ title: '', end: '', lines: ['It is about to break.'], columns: 40, height: 1 }]],
  },
  {
    onPress: () => {
      setImmediate(() => {
        throw new Error('it broke');
      });
    },
    onResize: () => {},
    onTrouble: () => {},
  },
);
