# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""A case's axes. Those not listed here are refused: an axis that this code does not consider would be computed wrongly."""
from protocol import Unsupported

_FLOATS = "dtype=fp32,fp16,bf16"
_ACTIVATIONS = "activation=none,relu,gelu,gelu_tanh,silu"
_EPILOGUE = f"{_ACTIVATIONS} bias=yes,no scale=no,member,output residual=no,before,after tf32=no,yes"
_ROW_NORM = f"n batch seq d {_FLOATS} affine=yes,no offset residual=no,yes,stored routed=no dropped=0 id_dtype=int64"
_CHANNEL_NORM = f"{_FLOATS} affine=yes,no offset"
_CONV = (f"n batch channels out kernel stride padding dilation groups {_FLOATS} layout=first,last x_layout=same,first,last "
         f"form=full,pointwise,depthwise {_ACTIVATIONS} bias=yes,no residual=no,before,after tf32=no,yes")
_UNQUANTIZED = "weights=packed"

# By primitive: numbers by name only, words with the supported values. `offset`, `spread` (of
# flash_attention) and `fill` describe how operands are filled; `group` and `rounded` apply only to quantised weights.
_KNOWN = {
    "linear": f"n batch d in out {_FLOATS} {_EPILOGUE} shared=no,yes {_UNQUANTIZED} group=128 rounded=no,yes",
    "ragged_linear": f"n batch d in out spread {_FLOATS} {_EPILOGUE}",
    "routing": "n batch spread dropped dtype=int64,int32",
    "top_k": f"n batch choices gate=softmax,softmax_all,sigmoid,none gates=yes,no {_FLOATS} id_dtype=int64,int32",
    "routed_linear": f"n batch d in out spread dropped=0 gather=yes,no scatter=no,yes gates=no,yes {_FLOATS} {_EPILOGUE} "
                     f"{_UNQUANTIZED} group=128",
    "embedding": "n batch seq vocab dim dtype=fp32,fp16,bf16,fp8_e4m3,fp8_e5m2 ids=shared,own "
                 f"id_dtype=int64,int32 {_UNQUANTIZED} bag=none,sum,mean fill=uniform,duplicates,zipf",
    "layernorm": _ROW_NORM,
    "rmsnorm": _ROW_NORM,
    "chain": f"n batch seq d norm=layernorm,rmsnorm,none {_ACTIVATIONS} bias=yes,no residual=yes,no,stored {_FLOATS} "
             "routed=no dropped=0 id_dtype=int64",
    "batchnorm1d": f"n batch channels length mode=eval,train {_CHANNEL_NORM}",
    "batchnorm2d": f"n batch channels height width mode=eval,train {_CHANNEL_NORM}",
    "groupnorm": f"n batch groups group_size height width {_CHANNEL_NORM} layout=first",
    "instancenorm1d": f"n batch channels length {_CHANNEL_NORM} layout=first",
    "instancenorm2d": f"n batch channels height width {_CHANNEL_NORM} layout=first",
    "conv1d": f"{_CONV} length",
    "conv2d": f"{_CONV} height width",
    "conv3d": f"{_CONV} depth height width kernel_depth",
    "flash_attention": f"n batch seq kv_seq heads kv_heads head_dim {_FLOATS} causal=no,yes window "
                       "lengths=no,shared,own slopes=no,yes bias=no,yes soft_cap spread",
    "attention": f"n batch seq d_model heads kv_seq kdim vdim {_FLOATS} inputs=self,cross bias=yes,no "
                 "causal=no,yes lengths=no,shared,own",
    "mlp": f"n batch d in hidden out layers {_FLOATS} {_ACTIVATIONS} last=no,yes bias=yes,no shared=no,yes tf32=no,yes",
    "routed_mlp": "n batch d in hidden out layers spread dropped=0 gather=yes,no scatter=yes,no gates=no,yes "
                  f"{_FLOATS} {_ACTIVATIONS} last=no,yes bias=yes,no tf32=no,yes",
    "recurrent": f"n cell=lstm,gru batch seq d in hidden {_FLOATS} bias=yes,no state=zeros,given reversed=no,yes shared=no,yes "
                 "tf32=no,yes",
    "pointwise": "n batch seq d function=relu,gelu,gelu_tanh,silu,sigmoid,tanh,elu,leaky_relu,prelu,hardswish,"
                 f"softplus,clamp slopes=member,feature {_FLOATS}",
    "softmax": f"n batch d log=no,yes {_FLOATS}",
    "binary": "n batch d function=add,subtract,multiply,divide broadcast=none,rows,features,members "
              f"{_ACTIVATIONS} {_FLOATS}",
    "dropout": f"n batch d {_FLOATS}",
    "pooling": "n batch channels height width mode=max,average,adaptive_average kernel stride padding dilation out "
               f"ceil=no,yes count_padding=yes,no {_FLOATS} layout=first,last",
    "interpolate": f"n batch channels height width scale coordinates=half_pixel,align_corners by=sizes,scale {_FLOATS} "
                   "layout=first,last",
    "ensemble": f"n batch d function=mean,variance,vote,log_mean_exp,sum mask=no,some {_FLOATS}",
}


def operations():
    return list(_KNOWN)


def _known_axes(op):
    axes = {}
    for item in _KNOWN[op].split():
        name, _, values = item.partition("=")
        axes[name] = values.split(",") if values else None
    return axes


class Case:
    """Known axes with known values."""

    def __init__(self, op, axes):
        if op not in _KNOWN:
            raise Unsupported(f"op {op} is not known here")
        known = _known_axes(op)
        self.op = op
        self._values = {}
        for name, value in axes.items():
            if name not in known:
                raise Unsupported(f"{op}: axis {name} is not known here")
            self._values[name] = self._checked(name, value, known[name])
        missing = [name for name in known if name not in axes]
        if missing:
            raise Unsupported(f"{op}: axis {missing[0]} is missing")

    def _checked(self, name, value, words):
        if words is None:
            try:
                return int(value)
            except (TypeError, ValueError):
                raise Unsupported(f"{self.op}: axis {name} is {value!r}, expected a whole number") from None
        if str(value) not in words:
            raise Unsupported(f"{self.op}: no {name}={value} here, but {', '.join(words)}")
        return str(value)

    def __getitem__(self, name):
        return self._values[name]

    def get(self, name, otherwise=None):
        return self._values.get(name, otherwise)

    def has(self, name):
        """Whether a word is anything but no or none."""
        return self._values.get(name, "no") not in ("no", "none")

    def size(self, name, otherwise):
        """A number; 0 means that of another axis."""
        return self._values[name] or self._values[otherwise]

    @property
    def n(self):
        return self._values["n"]
