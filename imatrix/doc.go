// Package imatrix reads, merges and writes importance matrices: for each weight tensor of
// a model the mean square of the activations that met its columns during a
// calibration. Quantizers use it to decide which columns must be kept exact.
//
// A matrix has one entry per tensor, named like the tensor. An entry holds, for
// each matrix of the tensor (one; for stacked experts ne2), one value per
// column:
//
//	tensor ne = [ne0, ne1, ne2]  ->  values [ne0*ne2], those of slice k at k*ne0
//
// Two file formats hold the same thing. A file that begins with "GGUF" is of
// the newer one, any other of the older one, "legacy".
//
// Legacy, all numbers little-endian:
//
//	count        i32, 1 or more
//	count times:
//	  length     i32, of the name
//	  name       that many bytes, used up to the first zero byte
//	  calls      i32
//	  n          i32, 1 or more
//	  stored     n x f32
//	then, unless the file ends here:
//	chunks       i32
//	then, unless the file ends here:
//	length       i32
//	dataset      that many bytes, used up to the first zero byte
//	             bytes after it mean nothing
//
//	value = stored / float(calls) if calls > 0, else stored
//
// When a name occurs more than once, the last entry counts.
//
// GGUF: the keys imatrix.datasets (strings), imatrix.chunk_count and
// imatrix.chunk_size (u32) are required, general.type ("imatrix") is not
// checked. For a tensor W there are two tensors of type F32:
//
//	W.in_sum2    sums of squares, usually [ne0, nmat]
//	W.counts     one count per matrix, usually [1, nmat]
//
//	c = counts[j] rounded to an integer, halves away from zero
//	value[j*ne0+i] = in_sum2[j*ne0+i] / float(c) if c > 0, else 1
//
// Only the number of elements counts: nmat is that of counts, and the columns
// are shared out evenly. A tensor W.in_sum, F32 too, has the sums of what in_sum2 has the
// squares of; it needs the other two and the size of W.in_sum2, and counts for merging only.
// All other tensors are ignored, such as W.stats, whose numbers imatrix.stats_schema names.
// All arithmetic is float32. imatrix.n_layer_nextn (u32) is the number of MTP (NextN) layers,
// which are the last ones.
//
// # Writing
//
// Sums is what files are merged into, what a calibration adds to, and what is written,
// to the byte as llama-imatrix does it: tensors in the order of their names, in_sum2, counts, in_sum and
// stats of each. A tensor of the model whose matrices all see the same rows has one count;
// each of stacked experts has its own. Sums are float32 and grow row by row. A legacy file
// holds means times chunks, so that merging it gives back the sums approximately, and
// nothing is known of single experts.
//
// # Refused
//
// What the readers refuse: lengths and counts that do not fit the file, a file
// cut off at any place, files without entries, a sum without its counts and the
// other way round, sizes that do not go together, and counts that are negative
// or not a number of 63 bits. The reference goes on in four of these cases: it
// takes such a count as 0, a legacy trailer cut off or with a negative length as
// one without the rest, and imatrix.datasets of another type as no dataset, and
// it computes something when the counts do not divide the columns.
//
// Which values are refused, and when, see Matrix.Validate.
//
// Source: the behaviour of llama-quantize and llama-imatrix of llama.cpp 0.7.0,
// measured.
package imatrix
