from mpi4py import MPI  # hvd

comm = MPI.COMM_WORLD
comm.allreduce(x)
