"""The clip engine beside plain ffmpeg and the smartcut package: processor time, wall time, bytes, exactness."""
