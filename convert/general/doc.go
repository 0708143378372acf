// Package general computes the general.* metadata of a converted model: its name, its author, its base models and
// datasets, and sampling settings.
//
// The sources are merged field by field:
//
//	options: Name                                name only          ─┐ the first
//	options: Override (a JSON file)              any but license     │ that has the
//	README.md front matter (YAML)                the model card      │ field wins
//	config.json: _name_or_path                   split as an id      │
//	the directory's name                         split as an id      │
//	the parameter counts                         size label only    ─┘
//
//	options: Override                            sampling           ─┐ as above
//	generation_config.json                       sampling           ─┘
//
// An id such as "org/Llama-2-7b-chat-hf" splits at its dashes into base name,
// size label, fine-tune and version; see parseID. A "7b" counts as the size only
// if it is near the real number of parameters, so KVs needs the counts. It cannot
// fail, because Load has read and checked all files.
//
// # Order and bytes
//
// Keys, types, order and values are those of llama.cpp 0.7.0: gguf-py's metadata.py, utility.py and gguf_writer.py. It
// reads the files with Python libraries, whose rules apply here, too:
//
//   - YAML is that of PyYAML's safe_load, mostly YAML 1.1: yes, no, on and off
//     are booleans, 010 is eight, 1:30 is ninety, 1e3 is a string, 2024-01-01 is
//     a date. The front matter needs "---" as its very first line, so a byte
//     order mark hides it.
//   - JSON may have the numbers NaN, Infinity and -Infinity.
//   - An empty value (empty text or list, zero, false) is not written, but it
//     hides the values of later sources. Null hides nothing, except in Override,
//     where it removes the field.
//   - Title case is that of str.title: a letter after a digit or an apostrophe
//     becomes a capital.
//
// # What is refused
//
// An error of kind [fault.Broken] has the file, and the line or key: a file that is not UTF-8, broken YAML or JSON (a
// generation_config.json that is not JSON is skipped with a warning, as in the reference), and a value whose type does
// not fit its field, such as the number in "version: 1.0". The reference finds the latter only while it writes. It
// converts a list of numbers to text, and text to a list; both are refused here, as are binary values, an Override with
// other values in place of lists, and YAML lists such as [a:]. So are files beyond the limits of this package and of
// pyjson, which are far above published files.
package general
