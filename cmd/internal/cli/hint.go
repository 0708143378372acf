package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
)

// hints says which flag sets an option of the libraries, by the option's name: see
// fault.Permits. A command without the flag gives no hint.
var hints = map[string]struct{ flag, text string }{
	"Force":           {"force", "use --force to go ahead"},
	"Parts":           {"parts", "say how many with --parts N"},
	"Target":          {"target-model-dir", "name it with --target-model-dir DIR"},
	"Pre":             {"pre", "name it with --pre NAME"},
	"AllowRequantize": {"allow-requantize", "use --allow-requantize to permit that"},
	"OutsideLinks":    {"outside-links", "use --outside-links to follow it"},
}

// hint adds to err which flag of the command would help.
func hint(cmd *cli.Command, err error) error {
	h, ok := hints[fault.Option(err)]
	if !ok || strings.Contains(err.Error(), h.text) ||
		!slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool { return f.Names()[0] == h.flag }) {
		return err
	}
	return fmt.Errorf("%w; %s", err, h.text)
}
