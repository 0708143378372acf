package fault

import "errors"

// Permits returns err with the name of a field of a package's Options, such as
// "Force", that permits the refused operation or avoids the error. The text of the
// error stays unchanged. Commands get the name from Option and add a hint with the
// flag.
func Permits(option string, err error) error { return &optional{err, option} }

type optional struct {
	error
	option string
}

func (o *optional) Unwrap() error { return o.error }

// Option returns the name that Permits has given to err, "" if there is none.
func Option(err error) string {
	var o *optional
	if !errors.As(err, &o) {
		return ""
	}
	return o.option
}
