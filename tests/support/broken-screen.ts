/** A program with an open dashboard screen that throws an uncaught exception at the first key press. */
import { loadScreen } from '../../src/cli/dashboard/screen.ts';
import { createRealWorld } from '../../src/system/real-world.ts';

const openScreen = await loadScreen(createRealWorld());
openScreen(
  { lines: ['It is about to break.'] },
  {
    onPress: () => {
      setImmediate(() => {
        throw new Error('it broke');
      });
    },
    asksBackground: false,
    onBackground: () => {},
    onResize: () => {},
    onTrouble: () => {},
  },
);
