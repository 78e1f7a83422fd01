while_loop = print
while_loop('tf')
