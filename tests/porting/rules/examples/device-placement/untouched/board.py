import mine

board = mine.Board()
with board.device('/gpu:0'):
    x = 1
