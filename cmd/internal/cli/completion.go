package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
	"ggforge/internal/text/nearest"
)

// completeVerb is the hidden verb that the scripts below call with the words after the command's name. The last word,
// at the cursor, has a dot in front so that it is never empty. The verb prints a line for each possible word, with
// its description after a tab; no line means the name of a file.
const completeVerb = "__complete"

// completions are scripts by shell, with NAME for the command's name.
var completions = []struct{ shell, script string }{
	{"bash", `# Completions of NAME for bash: source <(NAME completion bash)
_NAME() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${line%%$'\t'*}")
    done < <(NAME __complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" ".${COMP_WORDS[COMP_CWORD]}" 2>/dev/null)
}
complete -o bashdefault -o default -F _NAME NAME
`},
	{"zsh", `#compdef NAME
# Completions of NAME for zsh: source <(NAME completion zsh), or as _NAME in a folder of $fpath
_NAME() {
    local line
    local -a found
    for line in "${(@f)$(NAME __complete "${(@Q)words[2,CURRENT-1]}" ".${(Q)words[CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( $#found )); then
        _describe NAME found
    else
        _files
    fi
}
if [[ ${funcstack[1]} == _NAME ]]; then
    _NAME "$@"
else
    compdef _NAME NAME
fi
`},
	{"fish", `# Completions of NAME for fish: NAME completion fish > ~/.config/fish/completions/NAME.fish
function __NAME_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found (NAME __complete $words[2..-1] ".$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c NAME -e
complete -c NAME -f -k -a '(__NAME_complete)'
`},
	{"powershell", `# Completions of NAME for PowerShell: NAME completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName NAME -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.Extent.Text })
    NAME __complete @words ".$wordToComplete" 2>$null | ForEach-Object {
        $word, $text = $_ -split "` + "`t" + `", 2
        if (-not $text) { $text = $word }
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $text)
    }
}
`},
}

// Shells returns the shells that have completions.
func Shells() (names []string) {
	for _, c := range completions {
		names = append(names, c.shell)
	}
	return names
}

// services are the verbs that every command has. As the first argument their names do not mean files: ./man does.
func services(of *cli.Command) []*cli.Command {
	return []*cli.Command{
		{
			Name: "completion", Usage: "print completions for a shell: " + strings.Join(Shells(), ", "),
			ArgsUsage: "SHELL",
			Description: "The script says in its first lines where it goes. It asks the command itself what may be " +
				"next: verbs, flags, and values such as types.",
			Metadata: About{Examples: []string{"source <(" + of.Name + " completion bash)"},
				Values: func(int) []string { return Shells() }}.Metadata(),
			Action: func(_ context.Context, cmd *cli.Command) error { return completion(cmd, of.Name) },
		},
		{
			Name: "man", Usage: "print the manual page, as roff",
			Metadata: About{Examples: []string{of.Name + " man | man -l -"}}.Metadata(),
			Action: func(_ context.Context, cmd *cli.Command) error {
				if _, err := Args(cmd, 0, 0); err != nil {
					return err
				}
				return pageOf(of, "", true).roff(cmd.Root().Writer)
			},
		},
		{
			Name: completeVerb, Hidden: true, SkipFlagParsing: true,
			Action: func(_ context.Context, cmd *cli.Command) error {
				for _, e := range complete(of, cmd.Args().Slice()) {
					if _, err := fmt.Fprintf(cmd.Root().Writer, "%s\t%s\n", e.name, e.text); err != nil {
						return err
					}
				}
				return nil
			},
		},
	}
}

// service returns the command that runs the service in args, nil if they name none.
func service(cmd *cli.Command, args []string) *cli.Command {
	list := services(cmd)
	if len(args) < 2 || !slices.ContainsFunc(list, func(s *cli.Command) bool { return s.Name == args[1] }) {
		return nil
	}
	return &cli.Command{Name: cmd.Name, Commands: list, Action: NeedsVerb, Version: cmd.Version, Writer: cmd.Writer,
		ErrWriter: cmd.ErrWriter, Metadata: cmd.Metadata}
}

// completion prints the script for a shell.
func completion(cmd *cli.Command, name string) error {
	args, err := Args(cmd, 1, 1)
	if err != nil {
		return err
	}
	for _, c := range completions {
		if c.shell == args[0] {
			_, err := cmd.Root().Writer.Write([]byte(strings.ReplaceAll(c.script, "NAME", name)))
			return err
		}
	}
	return fault.Errorf(fault.Usage, "shell %q: want %s%s", args[0], strings.Join(Shells(), ", "),
		nearest.Hint(args[0], Shells()))
}

// complete returns the words that may replace the last of the words after the command's name.
func complete(root *cli.Command, words []string) []entry {
	if len(words) == 0 {
		return nil
	}
	words = slices.Clone(words)
	last := len(words) - 1
	words[last] = strings.TrimPrefix(words[last], ".")
	var pending cli.Flag // whose value is next
	cmd, args, flags := &cli.Command{Flags: root.Flags, Metadata: root.Metadata, Commands: root.Commands}, 0, true
	if len(root.Commands) > 0 {
		cmd.Commands = slices.Concat(root.Commands, services(root))
	} else if last > 0 {
		if s := service(root, []string{root.Name, words[0]}); s != nil {
			cmd = s
		}
	}
	for i, word := range words[:last] {
		switch {
		case word == "=" && i > 0 && strings.HasPrefix(words[i-1], "--"): // bash makes three words of --flag=value
		case pending != nil:
			pending = nil
		case flags && word == "--":
			flags = false
		case flags && len(word) > 1 && word[0] == '-':
			if f := flagOf(cmd, root, strings.TrimLeft(word, "-")); f != nil && valueName(f) != "" {
				pending = f
			}
		case args == 0 && cmd.Command(word) != nil:
			cmd = cmd.Command(word)
		default:
			args++
		}
	}
	word := words[last]
	if word == "=" && pending != nil {
		word = ""
	}
	name, value, inOne := strings.Cut(word, "=")
	switch {
	case pending != nil:
		return matching(choicesOf(pending), "", word)
	case flags && inOne && strings.HasPrefix(name, "--"):
		if f := flagOf(cmd, root, name[2:]); f != nil {
			return matching(choicesOf(f), name+"=", value)
		}
		return nil
	case flags && strings.HasPrefix(word, "-"):
		return matchingFlags(cmd, root, word)
	case len(cmd.Commands) > 0:
		return slices.DeleteFunc(verbEntries(cmd), func(e entry) bool { return !strings.HasPrefix(e.name, word) })
	}
	if values := AboutOf(cmd).Values; values != nil {
		return matching(values(args), "", word)
	}
	return nil
}

// verbEntries returns the verbs that the help lists.
func verbEntries(cmd *cli.Command) (list []entry) {
	for _, sub := range cmd.Commands {
		if !sub.Hidden {
			list = append(list, entry{sub.Name, sub.Usage})
		}
	}
	return list
}

// flagOf returns the flag of that name of a verb, or of the whole command.
func flagOf(cmd, root *cli.Command, name string) cli.Flag {
	for _, f := range slices.Concat(cmd.Flags, root.Flags) {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// everyFlag returns the flags that every command has, but for --version.
func everyFlag() []cli.Flag {
	return Flags(quietFlag(), Flag{Name: "help", Effect: PrintsOnly, Usage: "show help"},
		Flag{Name: helpAll, Effect: PrintsOnly, Usage: "show all flags"})
}

// matchingFlags returns the flags that begin with begin.
func matchingFlags(cmd, root *cli.Command, begin string) (list []entry) {
	for _, f := range slices.Concat(cmd.Flags, root.Flags, everyFlag()) {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		for _, name := range f.Names() {
			e := entry{dashed(name), flagEntry(f).text}
			if strings.HasPrefix(e.name, begin) &&
				!slices.ContainsFunc(list, func(x entry) bool { return x.name == e.name }) {
				list = append(list, e)
			}
		}
	}
	return list
}

// matching returns the names that begin with begin; a name in upper case matches lower case, too, and is then
// returned in lower case.
func matching(names []string, prefix, begin string) (list []entry) {
	for _, name := range names {
		if begin != "" && begin == strings.ToLower(begin) && !strings.HasPrefix(name, begin) {
			name = strings.ToLower(name)
		}
		if strings.HasPrefix(name, begin) {
			list = append(list, entry{prefix + name, ""})
		}
	}
	return list
}
