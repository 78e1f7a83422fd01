from mine import WholeFileReader

WholeFileReader()
