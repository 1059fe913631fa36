/** Told how far a stage has come, 0 to 1. */
export type Progress = (stage: string, fraction: number) => void;
