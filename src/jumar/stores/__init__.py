"""Object stores behind `s3://` and `obs://`, through obstore; without torch."""
