from mine import placeholder

placeholder(1, [None])
