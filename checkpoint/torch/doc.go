// Package torch reads the files that PyTorch's torch.save writes of a dict of tensors: names, types, shapes and raw
// bytes, in the order of the dict. It is independent of models and converts no weights.
//
// Such a file describes its tensors in a pickle, a program for a stack machine that may call any function of Python.
// Here nothing is called. The machine (pickle.go) has the instructions that build dicts, tuples and numbers, and knows
// only the functions of one short table (globals.go), which make tensors; any other name is an error before the next
// instruction is read.
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
//	pickle     ["94180", ...], the keys of the storages in the order of their data
//	 8 bytes   number of elements of the first storage, i64
//	 n bytes   its elements
//	 ...       the other storages, to the end of the file
//
// A tensor is a view of a storage: it has an offset, and a stride for each
// dimension, counted in elements. Several tensors may share a storage, overlap in
// it, and have their elements in any order there. Tensor.ReadAt gathers elements in
// row-major order; Tensor.Data has the mapped bytes of tensors stored in that order.
//
// A training program saves more than a dict of tensors. ParseNested reads dicts in the dict, too, and numbers, texts
// and lists, with the same machine and the same refusals.
//
// A file on a server need not be read as a whole (ReadFrom): of an archive, first its
// end with the directory and the pickle are read, some dozens of kilobytes, and then,
// tensor by tensor, the entries of storages with their heads, which are checked then.
//
// Checked before a file is accepted: entries of the archive do not overlap and their
// names are unique; a storage has the size given in the pickle; all elements of all
// tensors are inside their storages. Refused as unsupported: compressed entries,
// big-endian data, archives of TorchScript, element types that safetensors files do
// not have, tensors that are sparse, quantized or on the meta device.
//
// Sources: torch/serialization.py, torch/_utils.py and torch/_weights_only_unpickler.py
// of PyTorch 2.14.1; pickletools of Python 3.13; PKWARE's APPNOTE.TXT 6.3.10.
package torch
