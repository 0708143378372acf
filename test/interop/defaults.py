"""Prints the values that the transformers library fills in for the keys that a
config.json leaves out, per model_type: one JSON object per line. "defaults" are
the values; "follow" are the keys whose values depend on other keys, found by
changing the sizes on which they may depend. "alias" are the other names of keys.
"parts" are the configurations of vision and audio encoders: the name of their
row, TYPE/KEY where the class is the same for every model_type; their rows are
printed, too. "text" are the values that the class passes to the class of its
language model. Usage: defaults.py TYPE ..."""
import json, sys
from transformers import CONFIG_MAPPING, AutoConfig

# keys of every configuration that do not affect the arithmetic
META = set("""model_type architectures dtype transformers_version _name_or_path id2label label2id return_dict output_attentions
output_hidden_states chunk_size_feed_forward problem_type use_cache initializer_range is_encoder_decoder attention_dropout hidden_dropout
embd_pdrop resid_pdrop bos_token_id eos_token_id pad_token_id sep_token_id cls_token_id decoder_start_token_id vision_config audio_config""".split())

def view(cfg):
    d = {}
    for k, v in cfg.to_dict().items():
        if k in META or k.startswith("_") or k != "text_config" and isinstance(v, dict) and v.get("model_type"):
            continue  # the configuration of another part of the model
        d[k] = v["model_type"] if k == "text_config" and isinstance(v, dict) else v
    return d

def changed(cls, base):
    out = set()
    for key, value in list(base.items()):
        if type(value) is not int or value <= 0:
            continue
        for f in (2, 3):
            try:
                other = view(cls(**{key: value * f}))
            except Exception:
                continue
            out |= {k for k in base if k != key and k in other and other[k] != base[k]}
    return out

# names that a class takes in addition to those of its attribute_map
ALIAS = {"bloom": {"n_embed": "hidden_size"}}

PARTS = ["vision_config", "audio_config", "encoder_config", "projector_config", "thinker_config"]

def class_of(t):
    cls, *keys = t.split("/")
    cls = CONFIG_MAPPING[cls]
    for key in keys:
        cls = cls.sub_configs[key]
    return cls

def parts(t, cls):
    rows, full = {}, cls().to_dict()
    for key in PARTS:
        sub = getattr(cls, "sub_configs", {}).get(key)
        if sub is not None:
            rows[key] = full[key]["model_type"] if sub is AutoConfig else t + "/" + key
    return rows

lines, todo, done = [], sys.argv[1:], set()
while todo:
    t = todo.pop(0)
    if t in done:
        continue
    done.add(t)
    cls = class_of(t)
    base = view(cls())
    inner = parts(t, cls)
    todo += inner.values()
    for key in inner:
        if cls().to_dict()[key] is None:
            base[key] = None
    follow = changed(cls, base)
    row = {"defaults": {k: v for k, v in sorted(base.items()) if k not in follow}, "follow": sorted(follow)}
    alias = {**getattr(cls, "attribute_map", {}), **ALIAS.get(t, {})}
    if alias:
        row["alias"] = alias
    if inner:
        row["parts"] = inner
    text = {k: v for k, v in getattr(cls, "_default_text_config_kwargs", {}).items() if k not in META}
    if text:
        row["text"] = text
    lines.append("%s: %s" % (json.dumps(t), json.dumps(row)))
print("{\n" + ",\n".join(sorted(lines)) + "\n}")
