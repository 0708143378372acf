package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
)

// hint adds to err the flag of the command that would help: the one for the option named by err (fault.Permits).
func hint(cmd *cli.Command, err error) error {
	option := fault.Option(err)
	if option == "" {
		return err
	}
	for _, f := range Declarations(cmd) {
		if f.Option == option && !strings.Contains(err.Error(), f.Hint) {
			return fmt.Errorf("%w; %s", err, f.Hint)
		}
	}
	return err
}
