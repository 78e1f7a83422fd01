import mine

use(mine.Estimator)
