/** Where the programs of the fault harness find the folder that they share with it. */
export const HISTORY_DIR = '/history';
