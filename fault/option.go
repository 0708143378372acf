package fault

import "errors"

// Permits returns err with the name of the field of a package's Options that would
// permit what err forbids, or mend it: "Force". The text stays as it is. Programs
// whose users know the field under another name, such as a flag, ask Option and
// say so.
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
