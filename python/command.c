/* SPDX-License-Identifier: Apache-2.0
 * The command of the wheel: its code is in the library (cmake/python.cmake). */
int lac_command(int argc, char **argv);

int main(int argc, char **argv) { return lac_command(argc, argv); }
