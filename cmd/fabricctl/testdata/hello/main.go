// Command hello is the smallest program of its kind: what the start of fabricctl is compared with.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "hello", SilenceUsage: true}
	root.AddCommand(&cobra.Command{
		Use: "version",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "hello 1")
			return err
		},
	})
	if root.Execute() != nil {
		os.Exit(1)
	}
}
