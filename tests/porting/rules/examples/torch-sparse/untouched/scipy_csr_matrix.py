import scipy.sparse

scipy.sparse.csr_matrix(x)
