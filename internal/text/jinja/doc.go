// Package jinja renders chat templates: Jinja as apply_chat_template of the library transformers sets it up, with the
// values of Python. The same template and variables give the same text, or an error where Python raises one.
//
//	statements   for (if, else, recursive, break, continue), if, set, with, macro, call, filter, generation, raw, block,
//	             print; include, import, from and extends are errors, because a chat template has no others to read
//	expressions  all operators of Jinja, slices, lists, tuples, dicts, calls with names, * and **, filters, tests
//	functions    namespace, range, dict, joiner, cycler, raise_exception, strftime_now
//	values       None, bool, int (64 bits), float, str, Markup, list, tuple, dict, range; methods of str, list and dict
//	settings     trim_blocks, lstrip_blocks, no automatic escaping, tojson with the characters as they are, an immutable
//	             sandbox: nothing changes a list or dict, names such as __class__ give nothing
//
// A template is untrusted. Its size and nesting, and what a rendering takes (steps, bytes of values and output, calls
// within each other, numbers of a range), have limits, and there is nothing it could reach but its variables.
package jinja
