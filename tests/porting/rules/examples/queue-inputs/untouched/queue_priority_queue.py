import queue  # tf

q = queue.PriorityQueue()
