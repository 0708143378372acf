// Package allocate chooses the type of each tensor by what its bits are worth: how much less a
// model diverges from what it was for each byte.
//
//	Candidates ──► Predict: what each loses at each type ──► Best, Smallest ──► Rules of a recipe
//
// Recipes of this package are lists of names and types, as text: what was chosen can be
// read, changed, and used again, here and by the reference's tools.
package allocate
