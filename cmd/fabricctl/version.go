package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// toolVersion is the module version, or the commit for a build from a checkout.
func toolVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && len(s.Value) >= 12:
				v += "-" + s.Value[:12]
			case s.Key == "vcs.modified" && s.Value == "true":
				v += "-modified"
			}
		}
	}
	return v
}

type versionJSON struct {
	Schema  string `json:"schema"`
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (a *app) newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionJSON{"fabricctl/version/v1", toolVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			if json {
				return a.printJSON(v)
			}
			_, err = fmt.Fprintf(a.sys.out, "fabricctl %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
			return err
		},
	}
}

func (a *app) newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long: `Print a script that lets the shell complete commands and flags. That for bash needs the package bash-completion:

  source <(fabricctl completion bash)`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("completion wants one shell: bash, zsh, fish or powershell")
			}
			return nil
		},
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := a.wants("text"); err != nil {
				return err
			}
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.sys.out, true)
			case "zsh":
				return root.GenZshCompletion(a.sys.out)
			case "fish":
				return root.GenFishCompletion(a.sys.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.sys.out)
			}
			return usage("no completion for %q: want bash, zsh, fish or powershell", args[0])
		},
	}
}
