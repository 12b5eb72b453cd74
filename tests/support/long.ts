/** Whether the long run was asked for (`npm run test:long`, which sets TEST_LONG=1): everything is tried more often. */
export const isLongRun = process.env.TEST_LONG === '1';
