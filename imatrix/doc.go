// Package imatrix reads, merges and writes importance matrices: for each weight tensor of a model the mean squares of
// its input activations, by column, over the text of a calibration. Quantizers weight the errors of columns by it.
//
// A matrix has one entry per tensor, named like the tensor. An entry holds, for
// each matrix of the tensor (one; for stacked experts ne2), one value per
// column:
//
//	tensor ne = [ne0, ne1, ne2]  ->  values [ne0*ne2], those of slice k at k*ne0
//
// There are two file formats. A file that begins with "GGUF" has the newer one, any other file the older one, "legacy".
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
// Only the number of elements counts: nmat is that of counts, and the columns are divided evenly among the matrices. A
// tensor W.in_sum, F32 too, has the sums of the activations whose squares in_sum2 sums up; it needs the other two
// tensors and the size of W.in_sum2, and is used for merging only. All other tensors are ignored, such as W.stats,
// whose numbers imatrix.stats_schema names. All arithmetic is float32. imatrix.n_layer_nextn (u32) is the number of MTP
// (NextN) layers, which are the last ones.
//
// # Writing
//
// Files are merged into Sums, a calibration adds to it, and it is written with the bytes of llama-imatrix: tensors in
// the order of their names, in_sum2, counts, in_sum and stats of each. A tensor whose matrices all read the same rows
// has one count; each of stacked experts has its own. Sums are float32 and grow row by row. A legacy file holds means
// times chunks, so that merging it gives back the sums approximately, and it has no counts of single experts.
//
// # Refused
//
// The readers refuse lengths and counts that do not fit the file, a file cut off at any place, files without entries, a
// sum without its counts and the other way round, sizes that contradict each other, and counts that are negative or not
// a number of 63 bits. The reference continues in four of these cases: it takes such a count as 0, a legacy trailer cut
// off or with a negative length as one without the rest, and imatrix.datasets of another type as no dataset, and it
// computes something when the counts do not divide the columns.
//
// Matrix.Validate refuses values that are not finite or negative.
//
// Source: the observed behaviour of llama-quantize and llama-imatrix of llama.cpp 0.7.0.
package imatrix
