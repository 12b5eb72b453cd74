/** Hooks of handover: from an event of claude to what the model is told. */
import type { ContextSystem } from '../hook-call.ts';

export const handover: ContextSystem = { name: 'handover', answer: () => ({ text: '' }) };
