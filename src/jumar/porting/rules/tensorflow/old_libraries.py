"""Functions that newer releases of Python libraries no longer have."""

import ast

from jumar.porting.rewriting import Case, Text, View, report

_INSTEAD = {
    "cv": "cv2",
    "numpy.lib.arraypad": "numpy.pad",
    "scipy.misc.bytescale": "skimage.util.img_as_ubyte",
    "scipy.misc.comb": "scipy.special.comb",
    "scipy.misc.factorial": "scipy.special.factorial",
    "scipy.misc.fromimage": "numpy.asarray(image)",
    "scipy.misc.imfilter": "PIL.Image.Image.filter",
    "scipy.misc.imread": "imageio.imread",
    "scipy.misc.imresize": "PIL.Image.fromarray(image).resize((width, height))",
    "scipy.misc.imrotate": "skimage.transform.rotate",
    "scipy.misc.imsave": "imageio.imwrite",
    "scipy.misc.imshow": "matplotlib.pyplot.imshow",
    "scipy.misc.logsumexp": "scipy.special.logsumexp",
    "scipy.misc.toimage": "PIL.Image.fromarray",
    "skimage.measure.compare_mse": "skimage.metrics.mean_squared_error",
    "skimage.measure.compare_nrmse": "skimage.metrics.normalized_root_mse",
    "skimage.measure.compare_psnr": "skimage.metrics.peak_signal_noise_ratio",
    "skimage.measure.compare_ssim": "skimage.metrics.structural_similarity",
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.externals.joblib": "joblib",
    "sklearn.externals.six": "six",
    "sklearn.grid_search": "sklearn.model_selection",
}
"""Replacements of names removed by NumPy 1.17, SciPy 1.3, scikit-image 0.18, scikit-learn 0.23."""


def _is_dotted(node: ast.AST, _: View) -> bool:
    """Whether a node is not a bare name, which is reported at its import."""
    return not isinstance(node, ast.Name)


def _case(name: str, instead: str) -> Case:
    return Case(
        references=(name,),
        imports=(name,),
        when=(_is_dotted,),
        en="current releases of this library no longer have {name}",
        zh="如今安装的该库版本中已没有 {name}",
        todo_en=f"use {instead}, or install the old release (scipy==1.1.0, numpy==1.16.4, "
        "scikit-image==0.17.2, scikit-learn==0.22.2)",
        todo_zh=f"改用 {instead}，或安装旧版本（scipy==1.1.0、numpy==1.16.4、"
        "scikit-image==0.17.2、scikit-learn==0.22.2）",
        severity="blocking",
        confidence="likely",
    )


def _contains_objects(node: ast.AST, view: View) -> bool:
    """Whether a NumPy file contains objects, judging by the call that reads it."""
    if not isinstance(node, ast.Call) or any(
        passed.arg in ("allow_pickle", None) for passed in node.keywords
    ):
        return False
    if any(passed.arg == "encoding" for passed in node.keywords):
        return True
    outer = view.module.parent(node)
    return isinstance(outer, ast.Attribute) and outer.attr in ("item", "tolist")


_PICKLED = Case(
    calls=("numpy.load",),
    when=(_contains_objects,),
    en="since NumPy 1.16.3, np.load only reads objects with allow_pickle=True",
    zh="自 NumPy 1.16.3 起，未指定 allow_pickle=True 时 np.load 不读取对象",
    todo_en="add allow_pickle=True if you trust the file: unpickling it can run code",
    todo_zh="若信任该文件，请加上 allow_pickle=True：反序列化可能执行代码",
    severity="blocking",
    confidence="likely",
)


report(
    "old-libraries",
    title=Text(en="Functions that newer libraries lack", zh="新版本库中已删除的函数"),
    source="release notes of NumPy 1.17, SciPy 1.2 and 1.3, scikit-image 0.18, scikit-learn 0.23",
    cases=(*(_case(name, instead) for name, instead in _INSTEAD.items()), _PICKLED),
)
