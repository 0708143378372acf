// Package torch reads the files that PyTorch's torch.save writes of a dict of tensors: names, types, shapes and raw
// bytes, in the order of the dict. It is independent of models and converts no weights.
//
// Such a file describes its tensors in a pickle, which is a program for a small machine: it may name any function of
// Python and have it called. Nothing is called here. The machine (pickle.go) knows the instructions that build dicts,
// tuples and numbers, and of functions those of one short table (globals.go), which make tensors; every other name is
// an error, before the next instruction is read.
//
// Two containers hold the pickle and the data. Since PyTorch 1.6, a zip archive whose
// entries are stored, not compressed:
//
//	NAME/data.pkl         the pickle: {"weight": tensor of storage "0", ...}
//	NAME/byteorder        "little"; may be absent
//	NAME/data/0           the bytes of storage "0", little-endian
//	NAME/data/1           ...
//
// Before, one pickle after the other, and then the data:
//
//	pickle     0x1950a86a20f9469cfc6c
//	pickle     1001, the version
//	pickle     {"little_endian": True, ...}, the machine that wrote it
//	pickle     {"weight": tensor of storage "94180", ...}
//	pickle     ["94180", ...], the keys of the storages in the order of what follows
//	 8 bytes   number of elements of the first storage, i64
//	 n bytes   its elements
//	 ...       the other storages, to the end of the file
//
// A tensor is a view of a storage: it has an offset, and a stride for each
// dimension, counted in elements. Several may share a storage, overlap in it, and
// have their elements in any order there. Tensor.ReadAt gathers them in row-major
// order; Tensor.Data has the mapped bytes of those that lie that way already.
//
// A training program saves more than a dict of tensors. ParseNested reads dicts in the dict, too, and numbers, texts
// and lists, with the same machine and the same refusals.
//
// A file that is elsewhere need not come as a whole (ReadFrom): of an archive, its end
// with the directory and the pickle are read at first, some dozens of kilobytes, and
// then, tensor by tensor, the entries of storages, whose heads are checked then.
//
// Checked before a file is accepted: entries of the archive do not overlap and have
// one name each; a storage has the size that the pickle says; all elements of all
// tensors lie in their storages. Refused as unsupported: compressed entries,
// big-endian data, archives of TorchScript, types of element that safetensors files
// have not, tensors that are sparse, quantized or on the meta device.
//
// Sources: torch/serialization.py, torch/_utils.py and torch/_weights_only_unpickler.py
// of PyTorch 2.14.1; pickletools of Python 3.13; PKWARE's APPNOTE.TXT 6.3.10.
package torch
