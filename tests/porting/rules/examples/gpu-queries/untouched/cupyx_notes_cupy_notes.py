import cupyx_notes as cupy_notes
